package main

type completion struct{}

func (completion) Run() error { return nil }

type complete struct{}

func (complete) Run() error { return nil }
