package keyring

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/event"
	"lieudit/schemas/token"
)

const million = 1_000_000

// ringWithKeys returns a ring of n secret keys, ten per account, and the hashes of the keys.
func ringWithKeys(n int) (*Ring, []token.Hash) {
	r, hashes := New(nil, time.Now, "", nil), make([]token.Hash, n)
	s := r.state.Load()
	for i := range n {
		account := fmt.Sprintf("account-%d", i/10)
		if i%10 == 0 {
			s.openAccount(account, accountOpened(account))
		}
		e := secretIssued(uuid.NewString())
		e.Hint = "ld_sk_…abcd"
		hashes[i] = token.Hash(e.Hash)
		s.issueCredential(issuedCredential{account, e.Key, e.Hint, e.Hash, nil, secret, ""})
	}
	r.checkpoint.Position = 1
	return r, hashes
}

var rings = map[int]func() (*Ring, []token.Hash){
	1:       sync.OnceValues(func() (*Ring, []token.Hash) { return ringWithKeys(1) }),
	1000:    sync.OnceValues(func() (*Ring, []token.Hash) { return ringWithKeys(1000) }),
	100_000: sync.OnceValues(func() (*Ring, []token.Hash) { return ringWithKeys(100_000) }),
	million: sync.OnceValues(func() (*Ring, []token.Hash) { return ringWithKeys(million) }),
}

func BenchmarkFind(b *testing.B) {
	now := time.Now()
	for _, n := range []int{1, 1000, 100_000, million} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			r, hashes := rings[n]()
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := r.FindKey(hashes[rand.IntN(n)], now); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", n), func(b *testing.B) {
			r, hashes := rings[n]()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, ok := r.FindKey(hashes[rand.IntN(n)], now); !ok {
						b.Fatal("not found")
					}
				}
			})
		})
	}
}

// BenchmarkMap is the raw limit of BenchmarkFind: a Go map behind a lock, and only the lookup.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000, million} {
		_, hashes := rings[n]()
		plain, mu := make(map[token.Hash]int, n), sync.RWMutex{}
		for i, h := range hashes {
			plain[h] = i
		}
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for b.Loop() {
				mu.RLock()
				if _, ok := plain[hashes[rand.IntN(n)]]; !ok {
					b.Fatal("not found")
				}
				mu.RUnlock()
			}
		})
	}
}

// BenchmarkFold folds key events from their bytes; the raw limit is reading their JSON alone.
func BenchmarkFold(b *testing.B) {
	l := newFakeLog()
	l.add("account-a", startTime, accountOpened("a"))
	for range 100_000 {
		l.add("account-a", startTime, secretIssued(uuid.NewString()))
	}
	b.Run("fold", func(b *testing.B) {
		for b.Loop() {
			ringFrom(b, l.events, l)
		}
		b.ReportMetric(float64(b.N*len(l.events))/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("unmarshal", func(b *testing.B) {
		for b.Loop() {
			for _, r := range l.events {
				var e event.SecretKeyIssued
				if err := json.Unmarshal(r.Data, &e); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.N*len(l.events))/b.Elapsed().Seconds(), "events/s")
	})
}

func BenchmarkSnapshot(b *testing.B) {
	r, _ := rings[million]()
	file := filepath.Join(b.TempDir(), "ring")
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() {
			r.takeSnapshot()
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := r.takeSnapshot().writeFile(file, osfile.Disk{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	info, err := os.Stat(file)
	if err != nil {
		b.Skip("nothing written")
	}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if s, _, err := readSnapshotFile(file); err != nil || s.byHash.live != million {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(info.Size())/million, "bytes/key")
	})
	b.Run("read", func(b *testing.B) { // the raw limit of load
		for b.Loop() {
			if _, err := os.ReadFile(file); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMemory measures a million keys at rest: their bytes, and the time of a garbage collection, compared with an empty
// ring.
func BenchmarkMemory(b *testing.B) {
	for name, n := range map[string]int{"empty": 0, "folded": million} {
		b.Run(name, func(b *testing.B) {
			before := heapBytes()
			r, _ := ringWithKeys(n)
			held := heapBytes() - before
			for b.Loop() {
				runtime.GC()
			}
			runtime.KeepAlive(r)
			b.ReportMetric(float64(held)/million, "bytes/key")
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
