//go:build !linux

package main

func meek() {}
