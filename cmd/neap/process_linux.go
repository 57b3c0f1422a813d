package main

import "syscall"

// endOrphan has the command end when neap is killed: nothing renews its lock then.
func endOrphan(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }
