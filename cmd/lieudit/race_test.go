//go:build race

package main

// memoryFactor multiplies the memory that a process may take: the race detector takes a multiple.
const memoryFactor = 3
