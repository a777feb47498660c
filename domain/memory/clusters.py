"""Grouping by judgements: union-find that never joins what a judgement or a guard keeps apart.

The edges are taken in one canonical order, strongest first, so that the groups are a function of the set of
judgements. Where judgements disagree (a = b, b = c, a rivals c), the weaker edge is left out and reported.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True, order=True)
class Edge(Generic[Node]):
    """A reason to take two nodes for one; a smaller ``weakness`` counts first."""

    weakness: int
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Node]):
    """Which group each node is in, named by one of its members, and the edges that could not be followed."""

    root: Mapping[Node, Node]
    refused: tuple[Edge[Node], ...]


def group(
    nodes: Iterable[Node], edges: Iterable[Edge[Node]], apart: Callable[[Node, Node], bool]
) -> Grouping[Node]:
    """Join ``nodes`` along ``edges`` unless a pair of the joined group has to stay ``apart``."""
    members: dict[Node, list[Node]] = {node: [node] for node in nodes}
    root: dict[Node, Node] = {node: node for node in members}
    refused: list[Edge[Node]] = []
    for edge in sorted(edges, key=lambda e: (e.weakness, repr(e.left), repr(e.right))):
        if edge.left not in root or edge.right not in root:
            continue
        keep, gone = root[edge.left], root[edge.right]
        if keep == gone:
            continue
        if any(apart(one, other) for one in members[keep] for other in members[gone]):
            refused.append(edge)
            continue
        for node in members.pop(gone):
            root[node] = keep
            members[keep].append(node)
    return Grouping(root, tuple(refused))
