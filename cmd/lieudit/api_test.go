package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/address/officialtest"
)

var update = flag.Bool("update", false, "write what is answered now into testdata/api")

const scenePattern = "testdata/api/*.txtar"

// TestAPI plays every scene on the embedded parts: journal and SQLite.
func TestAPI(t *testing.T) {
	t.Parallel()
	playAllScenes(t, func(*testing.T, *service.Config) {})
}

// TestAPIOnServers plays every scene again on a node and Postgres.
func TestAPIOnServers(t *testing.T) {
	t.Parallel()
	playAllScenes(t, func(t *testing.T, c *service.Config) { withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))(c) })
}

// playAllScenes plays all scenes.
func playAllScenes(t *testing.T, change func(*testing.T, *service.Config)) {
	t.Helper()
	playScenes(t, scenePattern, change)
}

// playScenes plays scenes, side by side on one stage; those that need it get a stage of their own.
func playScenes(t *testing.T, which string, change func(*testing.T, *service.Config)) {
	t.Helper()
	files, err := filepath.Glob(which)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	shared := startService(t, func(c *service.Config) { change(t, c) })
	withOfficialAddresses := startServiceWithAddresses(t, func(c *service.Config) { change(t, c) })
	t.Run("scenes", func(t *testing.T) { // ends when all that run side by side have ended
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				s := parseScene(t, file)
				compareScene(t, file, s.play(t, s.selectService(t, shared, withOfficialAddresses, change)))
			})
		}
	})
}

// startServiceWithAddresses is a stage with the real addresses of Lozère and Bondy, imported while it runs; nil where they are not
// at hand.
func startServiceWithAddresses(t *testing.T, change func(*service.Config)) *testService {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(officialtest.Folder(), "ban", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		t.Logf("no scenes about addresses: no official data in %s; LIEUDIT_TEST_DATA says where it is", officialtest.Folder())
		return nil
	}
	svc := startService(t, change)
	svc.runCommand(t, "ban import --millesime 2024-10-01 --data "+svc.data+" "+strings.Join(files, " "))
	return svc
}

// selectService is where a scene plays: on the shared one, on the one with addresses, alone, or alone on a node that can go
// away.
func (s *scene) selectService(t *testing.T, shared, withOfficialAddresses *testService, change func(*testing.T, *service.Config)) *testService {
	t.Helper()
	switch s.fixture {
	case "":
		return shared
	case "addresses":
		if withOfficialAddresses == nil {
			officialtest.Missing(t, "this scene is about real addresses")
		}
		return withOfficialAddresses
	case "node":
		n := startNode(t)
		svc := startService(t, func(c *service.Config) {
			change(t, c)
			c.EventStore = n.address()
		})
		svc.node = n
		return svc
	}
	return startService(t, func(c *service.Config) { change(t, c) })
}

func compareScene(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(mustReadFile(t, file)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
