package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/body"
)

// writeOneAddress writes a file of the address base with one address, the street of which has a name of its own.
func writeOneAddress(t *testing.T, street string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "adresses-2026-01-02.csv")
	mustWriteFile(t, file, strings.ReplaceAll(oneAddressCSV, "Rue Basse", street))
	return file
}

// servedStreet is the street of the one address, "" where it is not found.
func (svc *testService) servedStreet(t *testing.T, key string) string {
	t.Helper()
	var a body.Address
	if svc.getJSON(t, key, oneAddressPath, &a) != http.StatusOK {
		return ""
	}
	return a.Street
}

// printedImport is what ban import --json prints of the instances.
type printedImport struct {
	State     string `json:"etat"`
	Reason    string `json:"raison"`
	Served    bool   `json:"servi"`
	Instances []struct {
		URL       string `json:"url"`
		SHA256    string `json:"sha256"`
		IsCurrent bool   `json:"a_jour"`
		Problem   string `json:"probleme"`
	} `json:"instances"`
}

// importAt imports a file of addresses at an instance, with success.
func importAt(t *testing.T, svc *testService, file string) (printed printedImport) {
	t.Helper()
	if err := json.Unmarshal([]byte(svc.runCommand(t, fmt.Sprintf("ban import --json --data %s %s", svc.data, file))), &printed); err != nil {
		t.Fatal(err)
	}
	return printed
}

// startFleet starts instances on one node and one Postgres, and returns a key that all of them know.
func startFleet(t *testing.T, count int, change func(*service.Config)) (fleet []*testService, key string) {
	t.Helper()
	configure := withServers(startNode(t), sqldbtest.NewPostgresDatabase(t))
	both := func(c *service.Config) { configure(c); change(c) }
	fleet = []*testService{startService(t, both)}
	for len(fleet) < count {
		fleet = append(fleet, startSecondInstance(t, fleet[0], both))
	}
	key = fleet[0].openCustomer(t)
	for _, svc := range fleet {
		waitUntil(t, "the key is known", func() bool { return svc.statusOf(t, key, "GET /me", "") == http.StatusOK })
	}
	return fleet, key
}

func TestAnImportAtOneInstanceIsServedByAllWhenItReturns(t *testing.T) {
	t.Parallel()
	fleet, key := startFleet(t, 3, func(*service.Config) {})
	for turn, street := range []string{"Rue Basse", "Rue Haute", "Rue Neuve"} {
		printed := importAt(t, fleet[turn%2], writeOneAddress(t, street))
		if printed.State != "publie" || len(printed.Instances) != 3 {
			t.Errorf("%s: %+v; want it released to 3 instances", street, printed)
		}
		for i, svc := range fleet {
			if got := svc.servedStreet(t, key); got != street {
				t.Errorf("instance %d answers %q, want %q", i, got, street)
			}
		}
	}
}
