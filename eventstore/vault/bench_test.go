package vault_test

import (
	"fmt"
	"testing"
	"time"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
)

// BenchmarkReplay asks for the keys of many subjects in the order they were made, as whoever reads the log from its
// beginning does, and BenchmarkHeld for one that was used a moment ago.
func BenchmarkReplay(b *testing.B) {
	const subjects = 5000
	for name, address := range map[string]func() string{"sqlite": b.TempDir, "postgres": func() string { return sqldbtest.NewPostgresDatabase(b) }} {
		b.Run(name, func(b *testing.B) {
			address := sqldbtest.DatabaseAddress(address())
			ask := func(create bool) {
				v, err := vault.New(address, nil, time.Now)
				if err != nil {
					b.Fatal(err)
				}
				defer v.Close()
				for i := range subjects {
					if _, err := v.Key(b.Context(), fmt.Sprint("account-", i), create); err != nil {
						b.Fatal(err)
					}
				}
			}
			ask(true)
			for b.Loop() {
				ask(false)
			}
			b.ReportMetric(float64(b.N*subjects)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

func BenchmarkHeld(b *testing.B) {
	v, err := vault.New(sqldbtest.DatabaseAddress(b.TempDir()), nil, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for b.Loop() {
		if _, err := v.Key(b.Context(), "a", true); err != nil {
			b.Fatal(err)
		}
	}
}
