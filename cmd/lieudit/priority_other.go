//go:build !linux

package main

// lowerPriority does nothing: niceness and disk class of threads are Linux's.
func lowerPriority() {}
