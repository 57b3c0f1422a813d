package idempotency_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

var (
	older = idempotency.EncryptionKey{ID: "2025", Secret: []byte("an AES-128 key..")}
	newer = idempotency.EncryptionKey{ID: "2026", Secret: []byte("a key of AES-256, thirty-two....")}
)

func sealing(t testing.TB, rdb redis.UniversalClient, prefix string, keys ...idempotency.EncryptionKey) *idempotency.Guard {
	t.Helper()
	return guard(t, rdb, prefix, &idempotency.Options{EncryptionKeys: keys})
}

func complete(t testing.TB, g *idempotency.Guard, key, result string) {
	t.Helper()
	if err := begin(t, g, key, "").Conclude(t.Context(), idempotency.DoneWith([]byte(result))); err != nil {
		t.Fatal(err)
	}
}

func stored(t testing.TB, admin redis.UniversalClient, record string) string {
	t.Helper()
	text, err := admin.Get(t.Context(), record).Result()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func overwrite(t testing.TB, admin redis.UniversalClient, record, text string) {
	t.Helper()
	if err := admin.Set(t.Context(), record, text, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}

// leaks reports whether a part of the secret is in what is stored.
func leaks(raw, secret string) bool {
	const least = 6
	for i := range len(secret) - least + 1 {
		if strings.Contains(raw, secret[i:i+least]) {
			return true
		}
	}
	return false
}

func TestASealedResultIsUnreadableInRedis(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		const secret = `{"iban":"DE02 1203 0000 0000 2020 51","amount":"1,234.56"}`
		g, open := sealing(t, rdb, prefix, newer), guard(t, rdb, prefix, nil)
		complete(t, open, "open", secret)
		if !leaks(stored(t, admin, nameOf(prefix, "open")), secret) {
			t.Fatal("without a key the result is not where this test looks for it, want it there")
		}
		for _, key := range []string{"one", "two"} {
			complete(t, g, key, secret)
		}
		reject := guardOf(t, rdb, prefix, idempotency.Reject{}, &idempotency.Options{EncryptionKeys: []idempotency.EncryptionKey{newer}})
		if err := begin(t, reject, "resolved", "").Conclude(t.Context(), idempotency.Unknown()); err != nil {
			t.Fatal(err)
		}
		if err := reject.Resolve(t.Context(), "resolved", idempotency.DoneWith([]byte(secret))); err != nil {
			t.Fatal(err)
		}
		var tails []string
		for _, key := range []string{"one", "two", "resolved"} {
			raw := stored(t, admin, nameOf(prefix, key))
			if leaks(raw, secret) || leaks(raw, string(newer.Secret)) {
				t.Errorf("%s: the record is %q, want neither the result nor the secret in it", key, raw)
			}
			_, tail, _ := strings.Cut(raw, "\n")
			if !strings.HasPrefix(tail, "s2026:") {
				t.Errorf("%s: got %q, want it to begin with the key's name, s2026:", key, tail)
			}
			tails = append(tails, tail[:len("s2026:")+12], tail[len("s2026:")+12:])
			replayed(t, g, key, "", secret)
			refused(t, open, key, "", idempotency.ErrUnreadable)
			refused(t, sealing(t, rdb, prefix, older), key, "", idempotency.ErrUnreadable)
			forged := idempotency.EncryptionKey{ID: newer.ID, Secret: older.Secret}
			refused(t, sealing(t, rdb, prefix, forged), key, "", idempotency.ErrUnreadable)
		}
		for i, tail := range tails {
			for _, other := range tails[:i] {
				if tail == other {
					t.Error("got two equal seals of one text, want different ones")
				}
			}
		}
	})
}

// A result that is sealed for one record opens in no other, however it came there.
func TestASealedResultIsBoundToItsRecord(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		moves := map[string]func(from, to string){
			"GET and SET": func(from, to string) { overwrite(t, admin, to, stored(t, admin, from)) },
			"DUMP and RESTORE": func(from, to string) {
				dump, err := admin.Dump(ctx, from).Result()
				if err == nil {
					err = admin.RestoreReplace(ctx, to, time.Hour, dump).Err()
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"into a record that was done": func(from, to string) {
				line, _, _ := strings.Cut(stored(t, admin, to), "\n")
				_, result, _ := strings.Cut(stored(t, admin, from), "\n")
				overwrite(t, admin, to, line+"\n"+result)
			},
		}
		g, open := sealing(t, rdb, prefix, newer), guard(t, rdb, prefix, nil)
		complete(t, g, "alice", "alice's")
		complete(t, open, "carol", "carol's")
		for how, move := range moves {
			complete(t, g, "bob", "bob's")
			move(nameOf(prefix, "alice"), nameOf(prefix, "bob"))
			refused(t, g, "bob", "", idempotency.ErrUnreadable)
			move(nameOf(prefix, "alice"), nameOf(prefix, "alice"))
			replayed(t, g, "alice", "", "alice's")
			move(nameOf(prefix, "carol"), nameOf(prefix, "bob"))
			replayed(t, open, "bob", "", "carol's") // so the seal is what refuses it
			if _, err := g.Forget(ctx, "bob"); err != nil {
				t.Fatalf("%s: Forget: got %v, want no error", how, err)
			}
		}
		// It does not open in a record of another guard's name either.
		other, err := idempotency.New(storetest.At(t, rdb, prefix), "other", idempotency.Retry{}, &idempotency.Options{EncryptionKeys: []idempotency.EncryptionKey{newer}, Budget: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		moves["GET and SET"](nameOf(prefix, "alice"), prefix+":guard:other:{alice}")
		refused(t, other, "alice", "", idempotency.ErrUnreadable)
	})
}

func TestSealsStayReadableAcrossARotation(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		without, before := guard(t, rdb, prefix, nil), sealing(t, rdb, prefix, older)
		between, after := sealing(t, rdb, prefix, newer, older), sealing(t, rdb, prefix, newer)
		complete(t, without, "plain", "in plain words")
		complete(t, before, "old", "by the old key")
		complete(t, between, "new", "by the new key")
		complete(t, between, "empty", "")

		replayed(t, between, "old", "", "by the old key")
		replayed(t, between, "new", "", "by the new key")
		replayed(t, after, "new", "", "by the new key")
		replayed(t, after, "empty", "", "")
		replayed(t, sealing(t, rdb, prefix, older, newer), "new", "", "by the new key")

		refused(t, before, "new", "", idempotency.ErrUnreadable)
		refused(t, after, "old", "", idempotency.ErrUnreadable)
		refused(t, after, "plain", "", idempotency.ErrUnreadable)
		refused(t, without, "old", "", idempotency.ErrUnreadable)

		replayed(t, before, "old", "", "by the old key") // the rotation has changed nothing
		replayed(t, without, "plain", "", "in plain words")
	})
}

// If any byte of a sealed result is changed, it cannot be read, and the work does not run
// again.
func TestAChangedSealIsUnreadable(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		g := sealing(t, rdb, prefix, newer, older)
		complete(t, g, "key", "pay 1.00")
		record := nameOf(prefix, "key")
		line, sealed, _ := strings.Cut(stored(t, admin, record), "\n")
		for at := range len(sealed) {
			changed := []byte(sealed)
			changed[at] ^= 1 << (at % 8)
			overwrite(t, admin, record, line+"\n"+string(changed))
			refused(t, g, "key", "", idempotency.ErrUnreadable)
			overwrite(t, admin, record, line+"\n"+sealed[:at])
			refused(t, g, "key", "", idempotency.ErrUnreadable)
		}
		for _, forged := range []string{"ppay 9,999.00", sealed + "\x00", sealed[1:], "s2025:" + sealed[len("s2026:"):], "s:", "\n" + sealed} {
			overwrite(t, admin, record, line+"\n"+forged)
			refused(t, g, "key", "", idempotency.ErrUnreadable)
		}
		overwrite(t, admin, record, line+"\n"+sealed)
		replayed(t, g, "key", "", "pay 1.00")
	})
}

func TestSecretsAreCopied(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	secret := bytes.Clone(newer.Secret)
	keys := []idempotency.EncryptionKey{{ID: newer.ID, Secret: secret}}
	g := sealing(t, srv.Client(t), prefix, keys...)
	clear(secret)
	keys[0] = older
	complete(t, g, "key", "result")
	replayed(t, sealing(t, srv.Client(t), prefix, newer), "key", "", "result")
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	const idRemedy, secretRemedy = "use 1 to 64 letters, digits, dots, dashes or underscores", "use 16, 24 or 32 random ones"
	for _, fault := range []struct {
		keys []idempotency.EncryptionKey
		want []string
	}{
		{[]idempotency.EncryptionKey{{Secret: newer.Secret}}, []string{`EncryptionKeys[0].ID is "": ` + idRemedy}},
		{[]idempotency.EncryptionKey{newer, {ID: "a:b", Secret: older.Secret}}, []string{`EncryptionKeys[1].ID is "a:b": ` + idRemedy}},
		{[]idempotency.EncryptionKey{{ID: "a b"}}, []string{`EncryptionKeys[0].ID is "a b": ` + idRemedy, "EncryptionKeys[0].Secret has 0 bytes: " + secretRemedy}},
		{[]idempotency.EncryptionKey{{ID: strings.Repeat("a", 65), Secret: older.Secret}}, []string{"EncryptionKeys[0].ID is ", idRemedy}},
		{[]idempotency.EncryptionKey{newer, {ID: "x", Secret: make([]byte, 17)}}, []string{"EncryptionKeys[1].Secret has 17 bytes: " + secretRemedy}},
		{[]idempotency.EncryptionKey{newer, older, newer}, []string{`EncryptionKeys[2].ID is "2026" again: give each key an ID of its own`}},
		{[]idempotency.EncryptionKey{{ID: "a"}, {ID: ""}}, []string{"EncryptionKeys[0].Secret has 0 bytes", "EncryptionKeys[1].ID", "EncryptionKeys[1].Secret has 0 bytes"}},
		{[]idempotency.EncryptionKey{{ID: "a"}, {ID: "a", Secret: newer.Secret}}, []string{"EncryptionKeys[0].Secret has 0 bytes", `EncryptionKeys[1].ID is "a" again`}},
	} {
		g, err := idempotency.New(rdb, "test", idempotency.Retry{}, &idempotency.Options{EncryptionKeys: fault.keys, Lease: -1})
		if g != nil || err == nil {
			t.Errorf("got a guard or no error, want an error with %q", fault.want)
			continue
		}
		for _, want := range append(fault.want, "Lease is ") { // it is joined with the other faults
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %q, want %q in it", err, want)
			}
		}
		for _, key := range fault.keys {
			if len(key.Secret) > 0 && strings.Contains(err.Error(), string(key.Secret)) {
				t.Errorf("got the error %q, want no secret in it", err)
			}
		}
	}
	if _, err := idempotency.New(rdb, "test", idempotency.Retry{}, &idempotency.Options{EncryptionKeys: []idempotency.EncryptionKey{}}); err != nil {
		t.Error(err)
	}
}

// The error says why a result cannot be read, and reveals nothing else.
func TestUnreadableResultsHaveAReason(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	complete(t, sealing(t, srv.Client(t), prefix, older), "key", "a result")
	_, err := sealing(t, srv.Client(t), prefix, newer).Begin(t.Context(), "key", "")
	if !errors.Is(err, idempotency.ErrUnreadable) || !strings.Contains(err.Error(), "not among Options.EncryptionKeys") {
		t.Errorf("got %v, want %v with the reason", err, idempotency.ErrUnreadable)
	}
	if strings.Contains(err.Error(), "a result") || strings.Contains(err.Error(), nameOf(prefix, "key")) {
		t.Errorf("got the error %q, want neither the result nor the record's name in it", err)
	}
}
