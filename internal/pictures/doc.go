// Package pictures holds what docs/pictures says to the scripts. The pictures are final,
// and each says in words what it shows. It has nothing but tests.
package pictures
