package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/body"
)

// TestReconcileNamesEveryAlteredLine changes rows of the read model with SQL. Reconciling names each change, and agrees
// again to the request once it is undone.
func TestReconcileNamesEveryAlteredLine(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		svc := startService(t, func(*service.Config) {})
		checkAlterations(t, svc, filepath.Join(svc.data, "readmodels", "usage-v4-g1.db"))
	})
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		address := sqldbtest.NewPostgresDatabase(t)
		checkAlterations(t, startService(t, withServers(startNode(t), address)), address)
	})
}

// alteration is a change of the read model, how it is undone, and the differences that reconciling must name.
type alteration struct {
	statement, undo string
	want            []string
}

func alterations() []alteration {
	return []alteration{
		{"update {usage_line} set requests = requests + 1 where account = 'mende'", "update {usage_line} set requests = requests - 1 where account = 'mende'",
			[]string{"mende ligne GET /me 3 4"}},
		{"update {usage_line} set endpoint = 'GET /x' where account = 'florac'", "update {usage_line} set endpoint = 'GET /me' where account = 'florac'",
			[]string{"florac ligne GET /me 3 0", "florac ligne GET /x 0 3"}},
		{"update {usage_line} set contract = 'none' where account = 'mende'", "update {usage_line} set contract = 'mende' where account = 'mende'",
			[]string{"mende ligne GET /me 3 0", "none ligne GET /me 0 3", "none periode  absent present"}},
		{"update {usage_period} set used = 2 where contract = 'mende'", "update {usage_period} set used = 3 where contract = 'mende'",
			[]string{"mende utilise  3 2"}},
		{"delete from {usage_line} where account = 'mende'", "", []string{"mende ligne GET /me 3 0"}},
		{"delete from {usage_period} where contract = 'mende'", "", []string{"mende ligne GET /me 3 0", "mende periode  present absent"}},
	}
}

func checkAlterations(t *testing.T, svc *testService, address string) {
	t.Helper()
	for _, account := range []string{"florac", "mende"} {
		svc.runCommand(t, "account open Mairie --plan STARTER --id "+account)
		key := strings.TrimSpace(svc.runCommand(t, "key issue "+account))
		for range 3 {
			if status := svc.statusOfMe(t, key); status != http.StatusOK {
				t.Fatalf("GET /me: %d", status)
			}
		}
	}
	code, found := svc.reconcileUsage(t)
	if code != 0 || found.Requests != 6 || found.Periods != 2 || found.Lines != 2 || len(found.Differences) > 0 {
		t.Fatalf("exit %d before anything was altered: %+v", code, found)
	}
	reconcileWhileCounting(t, svc)
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{Schema: "usage_v4_g1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, a := range alterations() {
		a.checkDetected(t, svc, db)
	}
	svc.runCommand(t, "projections rebuild usage")
	waitUntil(t, "the log and the fresh generation agree", func() bool {
		code, _ := svc.reconcileUsage(t)
		return code == 0
	})
}

// reconcileWhileCounting reconciles while requests are counted: log and read model are compared at one position.
func reconcileWhileCounting(t *testing.T, svc *testService) {
	t.Helper()
	svc.runCommand(t, "account open Mairie --plan STARTER --id busy")
	key := strings.TrimSpace(svc.runCommand(t, "key issue busy"))
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for ctx.Err() == nil {
				svc.statusOfMe(t, key)
			}
		})
	}
	for range 3 {
		if code, found := svc.reconcileUsage(t); code != 0 {
			t.Errorf("exit %d: %+v", code, found.Differences)
		}
	}
	stop()
	clients.Wait()
}

// checkDetected makes the change, compares the differences that are named, and undoes it.
func (a alteration) checkDetected(t *testing.T, svc *testService, db *sqldb.DB) {
	t.Helper()
	if _, err := db.Exec(t.Context(), a.statement); err != nil {
		t.Fatal(err)
	}
	code, found := svc.reconcileUsage(t)
	var got []string
	for _, d := range found.Differences {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", d.Contract, d.Kind, d.Endpoint, d.InLog, d.Shown))
	}
	slices.Sort(got)
	if code != 1 || !slices.Equal(got, a.want) {
		t.Errorf("%s: exit %d, %q, want %q", a.statement, code, got, a.want)
	}
	if a.undo == "" {
		return
	}
	if _, err := db.Exec(t.Context(), a.undo); err != nil {
		t.Fatal(err)
	}
}

// reconcileUsage runs lieudit usage reconcile and reads what it prints.
func (svc *testService) reconcileUsage(t *testing.T) (code int, found body.Reconciliation) {
	t.Helper()
	code, out, stderr := svc.tryCommand(t, "usage reconcile --json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("exit %d, %q, %s", code, out, stderr)
	}
	return code, found
}
