//go:build !linux

package main

// lowerPriority does nothing: only Linux has a niceness and a disk class for each thread.
func lowerPriority() {}
