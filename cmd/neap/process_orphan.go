//go:build unix && !linux

package main

import "syscall"

// endOrphan does nothing: few systems can end what a killed process leaves.
func endOrphan(*syscall.SysProcAttr) {}
