//go:build !race

package main

// memoryFactor multiplies the memory that a process may take; see race_test.go.
const memoryFactor = 1
