// Package history notes what concurrent workers asked and were told while the
// server was troubled, and has porcupine check whether one operation after the
// other could have told them so.
package history
