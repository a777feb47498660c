"""The rules of the memory, free of any library beyond the standard one."""
