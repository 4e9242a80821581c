package keyring

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

func TestARestartGoesOnFromTheSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"), issueSecret("j"), revoke("j"))
		r, end := run(t, l, file)
		until(t, "the key is known", func() bool { return fresh(r) })
		end()
		l.set(func(l *ledger) { l.away = eventstore.ErrUnavailable })
		again, _ := run(t, l, file)
		until(t, "the key is known", func() bool { return has(again, "k") })
		if fresh(again) || has(again, "j") {
			t.Errorf("fresh %v, revoked key found %v, want neither", fresh(again), has(again, "j"))
		}
		l.set(func(l *ledger) { l.away = nil })
		l.add("account-a", time.Now(), revoke("k"))
		until(t, "the ring is fresh", func() bool { return fresh(again) })
		if has(again, "k") {
			t.Error("revoked key found")
		}
	})
}

func TestALogRestoredUnderneathIsReadFromZero(t *testing.T) {
	for name, restored := range map[string]func(*ledger){
		"shorter than the mark": func(l *ledger) { l.events = slices.Clone(l.events[:2]) },
		"longer than the mark, as another instance wrote on": func(l *ledger) {
			l.events = slices.Clone(l.events[:2])
			l.id[0]++ // which the ids of events begin with
			for range 8 {
				l.put("account-a", time.Now(), event.AccountActionRefused{}.EventType(), []byte(`{}`))
			}
			l.id[0]--
		},
	} {
		for who, habit := range map[string]func(*ledger){
			"all learn it": func(*ledger) {}, "only looks do": func(l *ledger) { l.mute = true }, "only the subscription does": func(l *ledger) { l.hushed = true },
		} {
			t.Run(name+", "+who, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newLedger()
					l.set(habit)
					l.add("account-a", time.Now(), opened("a"), issueSecret("kept"), issueSecret("lost"), issueSecret("lost, too"))
					r, _ := run(t, l, "")
					until(t, "the ring is fresh", func() bool { return fresh(r) && has(r, "lost") })
					l.set(restored)
					if l.hushed {
						time.Sleep(21 * time.Second)
					}
					until(t, "the ring has begun again", func() bool { return fresh(r) && !has(r, "lost") })
					if st := r.Status(time.Now()); !has(r, "kept") || st.Keys != 1 || st.Position != l.events[len(l.events)-1].Position {
						t.Errorf("kept %v, status %+v, want one key at the log's end", has(r, "kept"), st)
					}
					at := l.add("account-a", time.Now(), issueSecret("new"))
					if err := r.Wait(t.Context(), at); err != nil || !has(r, "new") {
						t.Errorf("a key issued since: %v, %v", has(r, "new"), err)
					}
				})
			})
		}
	}
}

func TestAnotherLogUnderneathStopsTheRingUntilTheRightOneIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, _ := run(t, l, "")
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		id, events, other := l.id, l.events, newLedger()
		other.add("account-b", time.Now(), opened("b"), issueSecret("j"), issueSecret("i"))
		l.set(func(l *ledger) { l.id, l.events = other.id, other.events })
		until(t, "the ring is stopped", func() bool { return !fresh(r) })
		time.Sleep(time.Minute)
		if st := r.Status(time.Now()); st.Fresh || st.Reason == "" || st.Position != 20 {
			t.Errorf("status %+v, want stopped at 20 with a reason", st)
		}
		l.set(func(l *ledger) { l.id, l.events = id, events })
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		if !has(r, "k") || has(r, "j") {
			t.Errorf("its own key %v, the other log's %v", has(r, "k"), has(r, "j"))
		}
	})
}

func TestASnapshotOfAnotherLogIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, end := run(t, l, file)
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		end()
		other := newLedger()
		other.add("account-b", time.Now(), opened("b"), issueSecret("j"))
		again, _ := run(t, other, file)
		until(t, "the ring is fresh", func() bool { return fresh(again) })
		if has(again, "k") || !has(again, "j") {
			t.Errorf("old log's key %v, this log's key %v", has(again, "k"), has(again, "j"))
		}
	})
}

func TestASnapshotThatIsDamagedIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, end := run(t, l, file)
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		end()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2]++
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		again, end := run(t, l, file)
		until(t, "the ring is fresh", func() bool { return fresh(again) })
		if !has(again, "k") {
			t.Error("the key is not found")
		}
		end()
		if _, _, err := load(file); err != nil {
			t.Errorf("the next snapshot: %v", err)
		}
	})
}

func TestASnapshotIsTakenWhileRunningWhenMuchHasChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		r, _ := run(t, l, file)
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		time.Sleep(2 * pause)
		if _, err := os.Stat(file); err == nil {
			t.Error("a snapshot for two changes")
		}
		for i := range busy {
			l.add("account-a", time.Now(), issueSecret(fmt.Sprint(i)))
		}
		time.Sleep(2 * pause)
		until(t, "there is a snapshot", func() bool { _, err := os.Stat(file); return err == nil })
		s, mark, err := load(file)
		if err != nil || mark.Position != r.Status(time.Now()).Position {
			t.Fatalf("mark %v, error %v", mark, err)
		}
		if h := hash("k"); s.byHash.live != busy+1 {
			t.Errorf("%d keys, want %d", s.byHash.live, busy+1)
		} else if _, ok := s.key(&h); !ok {
			t.Error("the first key is not in it")
		}
	})
}

// encoded is a small snapshot with something of everything.
func encoded(t testing.TB) []byte {
	t.Helper()
	l := newLedger()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	l.add("account-a", at, opened("a"), event.PlanChanged{To: "STARTER", Quota: 7, Effective: at.Add(time.Hour)})
	h := hash("p")
	l.add("account-b", at, opened("b"), event.AgencyJoined{Agency: "a", Effective: at.Add(time.Hour)},
		event.PublishableKeyIssued{Key: "p", Hash: h[:], Hint: "ld_pk_…p", Origins: []string{"https://a.fr", "https://*.b.fr"}})
	for i := range pageRows + 3 {
		l.add("account-b", at, issueSecret(fmt.Sprint(i)))
	}
	t1 := hash("t")
	l.add("token-t", at, event.TokenIssued{Token: "t", Role: "customer", Account: "b", Hash: t1[:]})
	r := folded(t, l.events, l)
	var file bytes.Buffer
	if err := r.freeze().encode(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// folded is a ring that has taken events and nothing else.
func folded(t testing.TB, events []eventstore.Recorded, l *ledger) *Ring {
	t.Helper()
	r := New(nil, time.Now, "", nil)
	feed(t, r, events, l)
	return r
}

func feed(t testing.TB, r *Ring, events []eventstore.Recorded, l *ledger) {
	t.Helper()
	for _, e := range events {
		mark := eventstore.Mark{Log: l.id, Position: e.Position, Event: e.ID}
		if err := r.take(eventstore.Signal{Kind: eventstore.Event, Event: e, Mark: mark}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASnapshotCutAnywhereOrWithAnyByteChangedIsRefused(t *testing.T) {
	t.Parallel()
	data := encoded(t)
	if _, _, err := decode(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, _, err := decode(data[:n]); err == nil {
			t.Fatalf("cut to %d bytes: no error", n)
		}
		bad := slices.Clone(data)
		bad[n] ^= 0x10
		if _, _, err := decode(bad); err == nil {
			t.Fatalf("byte %d changed: no error", n)
		}
	}
	if _, _, err := decode(append(slices.Clone(data), 0)); err == nil {
		t.Error("one byte more: no error")
	}
}

func FuzzASnapshotWithTheRightChecksumIsReadOrRefused(f *testing.F) {
	data := encoded(f)
	body := data[len(header) : len(data)-4]
	f.Add(body)
	for n := 0; n < len(body); n += 7 {
		bad := slices.Clone(body)
		bad[n] = ^bad[n]
		f.Add(bad)
		f.Add(body[:n])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		file := append([]byte(header), body...)
		file = binary.LittleEndian.AppendUint32(file, crc32.Checksum(file, castagnoli))
		s, _, err := decode(file)
		if err != nil {
			return
		}
		for n := range s.keys.rows { // whatever was accepted can be asked
			p, i := s.keys.at(n)
			s.key(&p.rows[i].hash)
			if owner := p.rows[i].account; owner != 0 {
				s.terms(owner-1, time.Now())
			}
		}
	})
}
