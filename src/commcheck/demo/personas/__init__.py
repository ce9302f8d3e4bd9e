"""What hosts of the embedded fleet may be, one file each: how they differ from H100 on RoCE."""
