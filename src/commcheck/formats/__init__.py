"""Pure readers of tool outputs that more than one check uses, one file a tool."""
