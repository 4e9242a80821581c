//go:build !linux

package main

func lowerPriority() {}
