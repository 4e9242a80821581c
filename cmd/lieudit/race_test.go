//go:build race

package main

// memoryFactor is how much more memory a process takes with the race detector in it.
const memoryFactor = 3
