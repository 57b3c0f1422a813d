// Package history records what concurrent workers asked and what they were answered
// while a server failed. Porcupine then checks whether the answers are those of one
// operation after another.
package history
