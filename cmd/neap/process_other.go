//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// forwarded is caught, so that neap outlives the command. The console sends it to the command too.
var forwarded = []os.Signal{os.Interrupt}

func group(*exec.Cmd) {}

func takeBack(*exec.Cmd) {}

func forward(*exec.Cmd, os.Signal) error { return nil }

// terminate kills the command alone: there is no SIGTERM here, and no group.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func destroy(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func remains(*exec.Cmd) bool { return false }

func exitOf(state *os.ProcessState) int { return state.ExitCode() }
