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
		l, file := newFakeLog(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"), secretIssued("j"), keyRevoked("j"))
		r, end := startRing(t, l, file)
		until(t, "the key is known", func() bool { return isFresh(r) })
		end()
		l.configure(func(l *fakeLog) { l.readErr = eventstore.ErrUnavailable })
		again, _ := startRing(t, l, file)
		until(t, "the key is known", func() bool { return hasKey(again, "k") })
		if isFresh(again) || hasKey(again, "j") {
			t.Errorf("fresh %v, revoked key found %v, want neither", isFresh(again), hasKey(again, "j"))
		}
		l.configure(func(l *fakeLog) { l.readErr = nil })
		l.add("account-a", time.Now(), keyRevoked("k"))
		until(t, "the ring is fresh", func() bool { return isFresh(again) })
		if hasKey(again, "k") {
			t.Error("revoked key found")
		}
	})
}

func TestRestoredLogIsReadFromZero(t *testing.T) {
	for name, restored := range map[string]func(*fakeLog){
		"shorter than the checkpoint": func(l *fakeLog) { l.events = slices.Clone(l.events[:2]) },
		"longer than the checkpoint, as another instance wrote on": func(l *fakeLog) {
			l.events = slices.Clone(l.events[:2])
			l.id[0]++ // the ids of events begin with it
			for range 8 {
				l.record("account-a", time.Now(), event.AccountActionRefused{}.EventType(), []byte(`{}`))
			}
			l.id[0]--
		},
	} {
		for who, configure := range map[string]func(*fakeLog){
			"all learn it": func(*fakeLog) {}, "only looks do": func(l *fakeLog) { l.isSubscriptionMute = true }, "only the subscription does": func(l *fakeLog) { l.hidesDivergence = true },
		} {
			t.Run(name+", "+who, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newFakeLog()
					l.configure(configure)
					l.add("account-a", time.Now(), accountOpened("a"), secretIssued("kept"), secretIssued("lost"), secretIssued("lost, too"))
					r, _ := startRing(t, l, "")
					until(t, "the ring is fresh", func() bool { return isFresh(r) && hasKey(r, "lost") })
					l.configure(restored)
					if l.hidesDivergence {
						time.Sleep(21 * time.Second)
					}
					until(t, "the ring has begun again", func() bool { return isFresh(r) && !hasKey(r, "lost") })
					if st := r.Status(time.Now()); !hasKey(r, "kept") || st.Keys != 1 || st.Position != l.events[len(l.events)-1].Position {
						t.Errorf("kept %v, status %+v, want one key at the log's end", hasKey(r, "kept"), st)
					}
					at := l.add("account-a", time.Now(), secretIssued("new"))
					if err := r.AwaitPosition(t.Context(), at); err != nil || !hasKey(r, "new") {
						t.Errorf("a key issued since: %v, %v", hasKey(r, "new"), err)
					}
				})
			})
		}
	}
}

func TestAnotherLogStopsTheRingUntilTheRightOneIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, _ := startRing(t, l, "")
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		id, events, other := l.id, l.events, newFakeLog()
		other.add("account-b", time.Now(), accountOpened("b"), secretIssued("j"), secretIssued("i"))
		l.configure(func(l *fakeLog) { l.id, l.events = other.id, other.events })
		until(t, "the ring is stopped", func() bool { return !isFresh(r) })
		time.Sleep(time.Minute)
		if st := r.Status(time.Now()); st.Fresh || st.Reason == "" || st.Position != 20 {
			t.Errorf("status %+v, want stopped at 20 with a reason", st)
		}
		l.configure(func(l *fakeLog) { l.id, l.events = id, events })
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		if !hasKey(r, "k") || hasKey(r, "j") {
			t.Errorf("its own key %v, the other log's %v", hasKey(r, "k"), hasKey(r, "j"))
		}
	})
}

func TestASnapshotOfAnotherLogIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newFakeLog(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, end := startRing(t, l, file)
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		end()
		other := newFakeLog()
		other.add("account-b", time.Now(), accountOpened("b"), secretIssued("j"))
		again, _ := startRing(t, other, file)
		until(t, "the ring is fresh", func() bool { return isFresh(again) })
		if hasKey(again, "k") || !hasKey(again, "j") {
			t.Errorf("old log's key %v, this log's key %v", hasKey(again, "k"), hasKey(again, "j"))
		}
	})
}

func TestASnapshotThatIsDamagedIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newFakeLog(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, end := startRing(t, l, file)
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		end()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2]++
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		again, end := startRing(t, l, file)
		until(t, "the ring is fresh", func() bool { return isFresh(again) })
		if !hasKey(again, "k") {
			t.Error("the key is not found")
		}
		end()
		if _, _, err := readSnapshotFile(file); err != nil {
			t.Errorf("the next snapshot: %v", err)
		}
	})
}

func TestASnapshotIsTakenWhileRunningWhenMuchHasChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newFakeLog(), filepath.Join(t.TempDir(), "ring")
		r, _ := startRing(t, l, file)
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		time.Sleep(2 * saveInterval)
		if _, err := os.Stat(file); err == nil {
			t.Error("a snapshot for two changes")
		}
		for i := range minSaveChanges {
			l.add("account-a", time.Now(), secretIssued(fmt.Sprint(i)))
		}
		time.Sleep(2 * saveInterval)
		until(t, "there is a snapshot", func() bool { _, err := os.Stat(file); return err == nil })
		s, checkpoint, err := readSnapshotFile(file)
		if err != nil || checkpoint.Position != r.Status(time.Now()).Position {
			t.Fatalf("checkpoint %v, error %v", checkpoint, err)
		}
		if h := hash("k"); s.byHash.live != minSaveChanges+1 {
			t.Errorf("%d keys, want %d", s.byHash.live, minSaveChanges+1)
		} else if _, ok := s.findKey(&h); !ok {
			t.Error("the first key is not in it")
		}
	})
}

// encodedSnapshot is a small snapshot file that holds everything a snapshot can.
func encodedSnapshot(t testing.TB) []byte {
	t.Helper()
	l := newFakeLog()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	l.add("account-a", at, accountOpened("a"), event.PlanChanged{To: "STARTER", Quota: 7, Effective: at.Add(time.Hour)})
	h := hash("p")
	l.add("account-b", at, accountOpened("b"), event.AgencyJoined{Agency: "a", Effective: at.Add(time.Hour)},
		event.PublishableKeyIssued{Key: "p", Hash: h[:], Hint: "ld_pk_…p", Origins: []string{"https://a.fr", "https://*.b.fr"}})
	for i := range pageRows + 3 {
		l.add("account-b", at, secretIssued(fmt.Sprint(i)))
	}
	t1 := hash("t")
	l.add("token-t", at, event.TokenIssued{Token: "t", Role: "customer", Account: "b", Hash: t1[:]})
	r := ringFrom(t, l.events, l)
	var file bytes.Buffer
	if err := r.takeSnapshot().marshal(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// ringFrom is a ring that has folded events and done nothing else.
func ringFrom(t testing.TB, events []eventstore.RecordedEvent, l *fakeLog) *Ring {
	t.Helper()
	r := New(nil, time.Now, "", nil)
	feedEvents(t, r, events, l)
	return r
}

func feedEvents(t testing.TB, r *Ring, events []eventstore.RecordedEvent, l *fakeLog) {
	t.Helper()
	for _, e := range events {
		checkpoint := eventstore.Checkpoint{Log: l.id, Position: e.Position, Event: e.ID}
		if err := r.applySignal(eventstore.Signal{Kind: eventstore.EventAppeared, Event: e, Checkpoint: checkpoint}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASnapshotCutAnywhereOrWithAnyByteChangedIsRefused(t *testing.T) {
	t.Parallel()
	data := encodedSnapshot(t)
	if _, _, err := unmarshalSnapshot(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, _, err := unmarshalSnapshot(data[:n]); err == nil {
			t.Fatalf("cut to %d bytes: no error", n)
		}
		bad := slices.Clone(data)
		bad[n] ^= 0x10
		if _, _, err := unmarshalSnapshot(bad); err == nil {
			t.Fatalf("byte %d changed: no error", n)
		}
	}
	if _, _, err := unmarshalSnapshot(append(slices.Clone(data), 0)); err == nil {
		t.Error("one byte more: no error")
	}
}

func TestASnapshotWithoutTheManyKeysOfAClosedAccountIsRead(t *testing.T) {
	t.Parallel()
	l := newFakeLog()
	l.add("account-a", startTime, accountOpened("a"))
	for i := range 1000 {
		l.add("account-a", startTime, secretIssued(fmt.Sprint(i)))
	}
	l.add("account-a", startTime, event.AccountClosed{})
	var file bytes.Buffer
	if err := ringFrom(t, l.events, l).takeSnapshot().marshal(&file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := unmarshalSnapshot(file.Bytes()); err != nil {
		t.Error(err)
	}
}

func FuzzASnapshotWithTheRightChecksumIsReadOrRefused(f *testing.F) {
	data := encodedSnapshot(f)
	body := data[len(snapshotHeader) : len(data)-4]
	f.Add(body)
	for n := 0; n < len(body); n += 7 {
		bad := slices.Clone(body)
		bad[n] = ^bad[n]
		f.Add(bad)
		f.Add(body[:n])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		file := append([]byte(snapshotHeader), body...)
		file = binary.LittleEndian.AppendUint32(file, crc32.Checksum(file, castagnoli))
		s, _, err := unmarshalSnapshot(file)
		if err != nil {
			return
		}
		for n := range s.keys.rows { // everything that was accepted can be queried
			p, i := s.keys.pageOf(n)
			s.findKey(&p.rows[i].hash)
			if owner := p.rows[i].account; owner != 0 {
				s.termsAt(owner-1, time.Now())
			}
		}
	})
}
