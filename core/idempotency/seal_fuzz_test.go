package idempotency

import (
	"bytes"
	"testing"
)

// FuzzOpen: a sealed result opens in its own record. It opens in no record if it was
// changed or made up.
func FuzzOpen(f *testing.F) {
	s, err := newSeals([]EncryptionKey{{ID: "a", Secret: make([]byte, 32)}, {ID: "b", Secret: bytes.Repeat([]byte{1}, 16)}})
	if err != nil {
		f.Fatal(err)
	}
	none, _ := newSeals(nil)
	sealed := string(s.seal("r", []byte("x")))
	f.Add("r", "r", []byte("x"), uint(0), byte('s'^'p'), uint(0), "")
	f.Add("r", "q", []byte(""), uint(1), byte('a'^'b'), uint(1), "p")
	f.Add("", "r", []byte("long enough for some blocks of AES to be made of it"), uint(20), byte(1), uint(16), sealed[:14])
	f.Add("r{}", "r", []byte("x"), uint(2), byte(255), uint(12), "sa:")
	f.Add("r", "", []byte("x"), uint(30), byte(0), uint(0), "s")
	f.Fuzz(func(t *testing.T, record, other string, text []byte, at uint, flip byte, cut uint, forged string) {
		sealed := string(s.seal(record, text))
		opened, err := s.open(record, sealed)
		if err != nil || !bytes.Equal(opened, text) {
			t.Fatalf("got %q, %v, want %q", opened, err, text)
		}
		opens := func(what, record, stored string) {
			t.Helper()
			if opened, err := s.open(record, stored); err == nil {
				t.Fatalf("%s: got %q opened in %q as %q, want an error", what, stored, record, opened)
			}
		}
		if other != record {
			opens("moved", other, sealed)
		}
		if flip != 0 {
			changed := []byte(sealed)
			changed[at%uint(len(sealed))] ^= flip
			opens("changed", record, string(changed))
		}
		opens("cut", record, sealed[:cut%uint(len(sealed))])
		opens("cut in front", record, sealed[1+cut%uint(len(sealed)):])
		opens("longer", record, sealed+"\x00")
		opens("forged", record, forged)

		if opened, err := none.open(other, string(none.seal(record, text))); err != nil || !bytes.Equal(opened, text) {
			t.Fatalf("plain: got %q, %v, want %q", opened, err, text)
		}
		if _, err := none.open(record, sealed); err == nil {
			t.Fatal("got a sealed result opened without a key, want an error")
		}
	})
}
