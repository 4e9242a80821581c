package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/service"
	"lieudit/queries/address/officialtest"
	"lieudit/schemas/table/tabletest"
)

var update = flag.Bool("update", false, "write what is answered now into testdata/api")

const scenes = "testdata/api/*.txtar"

// TestAPI plays every scene on the embedded parts: journal and SQLite.
func TestAPI(t *testing.T) {
	t.Parallel()
	playAll(t, func(*testing.T, *service.Config) {})
}

// TestAPIOnServers plays every scene again on a node and Postgres.
func TestAPIOnServers(t *testing.T) {
	t.Parallel()
	playAll(t, func(t *testing.T, c *service.Config) { onServers(startNode(t), tabletest.Postgres(t))(c) })
}

// playAll plays all scenes.
func playAll(t *testing.T, change func(*testing.T, *service.Config)) {
	t.Helper()
	play(t, scenes, change)
}

// play plays scenes, side by side on one stage; those that need it get a stage of their own.
func play(t *testing.T, which string, change func(*testing.T, *service.Config)) {
	t.Helper()
	files, err := filepath.Glob(which)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	shared := raise(t, func(c *service.Config) { change(t, c) })
	france := withAddresses(t, func(c *service.Config) { change(t, c) })
	t.Run("scenes", func(t *testing.T) { // ends when all that run side by side have ended
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				s := readScene(t, file)
				compare(t, file, s.play(t, s.stage(t, shared, france, change)))
			})
		}
	})
}

// withAddresses is a stage with the real addresses of Lozère and Bondy, imported while it runs; nil where they are not
// at hand.
func withAddresses(t *testing.T, change func(*service.Config)) *stage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(officialtest.Folder(), "ban", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		t.Logf("no scenes about addresses: no official data in %s; LIEUDIT_TEST_DATA says where it is", officialtest.Folder())
		return nil
	}
	st := raise(t, change)
	st.run(t, "ban import --millesime 2024-10-01 --data "+st.data+" "+strings.Join(files, " "))
	return st
}

// stage is where a scene plays: on the shared one, on the one with addresses, alone, or alone on a node that can go
// away.
func (s *scene) stage(t *testing.T, shared, france *stage, change func(*testing.T, *service.Config)) *stage {
	t.Helper()
	switch s.place {
	case "":
		return shared
	case "addresses":
		if france == nil {
			officialtest.Missing(t, "this scene is about real addresses")
		}
		return france
	case "node":
		n := startNode(t)
		st := raise(t, func(c *service.Config) {
			change(t, c)
			c.EventStore = n.address()
		})
		st.log = n
		return st
	}
	return raise(t, func(c *service.Config) { change(t, c) })
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(mustRead(t, file)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
