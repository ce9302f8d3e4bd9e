"""The Ansible-compatible inventory."""
