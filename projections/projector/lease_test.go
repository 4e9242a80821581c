package projector

import (
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

func TestOnlyInstanceClaimsLeaseAtOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		db := openGenerationOnClock(t, address, time.Now)
		for _, step := range []struct {
			by   lease
			want string
		}{{lease{db, "dead", false}, "dead"}, {lease{db, "next", false}, "dead"}, {lease{db, "next", true}, "next"}, {lease{db, "dead", false}, "next"}} {
			if got, err := step.by.claim(t.Context()); err != nil || got.LeaseHolder != step.want {
				t.Errorf("claimed by %s: it is %s's, %v; want %s's", step.by.owner, got.LeaseHolder, err, step.want)
			}
		}
	})
}

// A lease is taken over once its holder has not renewed it for its duration, and not hours later because the database's clock
// was set back. In that case it is taken at once: the checkpoint fences off a holder that is alive.
func TestALeaseIsClaimedAlthoughTheDatabasesClockIsSet(t *testing.T) {
	t.Parallel()
	const leaseDuration, hour = int64(leaseDuration / time.Microsecond), int64(time.Hour / time.Microsecond)
	for name, steps := range map[string][]struct {
		clockChanges int64 // µs
		want         string
	}{
		"not set":               {{leaseDuration - 1, "dead"}, {2, "next"}},
		"set back by hours":     {{-5 * hour, "next"}, {leaseDuration, "next"}},
		"set back by a little":  {{leaseDuration / 2, "dead"}, {-leaseDuration / 4, "dead"}, {leaseDuration, "next"}},
		"set back at its start": {{-1, "next"}},
		"set forth by hours":    {{5 * hour, "next"}},
		"set forth and back":    {{5 * hour, "next"}, {-5 * hour, "next"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				now := &atomic.Int64{}
				now.Store(time.Date(2031, 10, 26, 2, 30, 0, 0, time.UTC).UnixMicro())
				db := openGenerationOnClock(t, address, func() time.Time { return time.UnixMicro(now.Load()) })
				if got, err := (lease{db, "dead", false}).claim(t.Context()); err != nil || got.LeaseHolder != "dead" {
					t.Fatalf("the first claim: %+v, %v", got, err)
				}
				for _, step := range steps {
					now.Add(step.clockChanges)
					if got, err := (lease{db, "next", false}).claim(t.Context()); err != nil || got.LeaseHolder != step.want {
						t.Errorf("the clock moved by %d µs: it is %s's, %v; want %s's", step.clockChanges, got.LeaseHolder, err, step.want)
					}
				}
			})
		})
	}
}

// openGenerationOnClock opens a new generation, until the test ends, in a database with a clock of the test.
func openGenerationOnClock(t *testing.T, address string, clock func() time.Time) *sqldb.DB {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	registry.Simulated.Clock = clock
	t.Cleanup(func() { registry.Close() })
	g, err := registry.BuildGeneration(t.Context(), table.AccountModel, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := registry.OpenGeneration(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return db
}
