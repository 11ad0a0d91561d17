"""What others' scanners say of accel. Not part of `make test`: their packages are large, and installed apart."""
