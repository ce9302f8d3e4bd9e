"""What NCCL and HCCL say they do: their logs read into facts, and the rules that judge them."""
