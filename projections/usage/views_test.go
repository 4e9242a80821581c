package usage_test

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

// TestViewsShowUsageUnderPlainNames: a tick that counts, one that would pass the cap, a refund and a correction.
func TestViewsShowUsageUnderPlainNames(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, usage.Model)
		mende := func(key string, requests int64) []event.UsageCount {
			return []event.UsageCount{{Account: "mende", Key: key, Endpoint: "GET /me", Requests: requests}}
		}
		s.Append(ledger.StreamName("mende", first),
			event.UsageOpened{Contract: "mende", First: first, Next: next, Cap: 10},
			event.UsageTicked{InstanceID: "i", Sequence: 1, Day: first, Counts: mende("k1", 8)},
			event.UsageTicked{InstanceID: "i", Sequence: 2, Day: first, Counts: mende("k2", 3)},
			event.UsageRefunded{InstanceID: "i", Sequence: 3, Day: first, Counts: mende("k1", 1)},
			event.UsageClosed{Total: 7, LineCount: 1, Digest: []byte{0xab}},
			event.UsageAdjusted{Day: first, Account: "mende", Key: "k1", Endpoint: "GET /me", Requests: -2})
		projectortest.Rows(s, table.UsageModel, table.UsageLines) // all is there
		for question, want := range map[string]string{
			"select compte, contrat, periode, jour, cle, endpoint, requetes from usage_par_jour":                   "mende mende 2025-11-21 2025-11-21 k1 GET /me 5",
			"select compte, contrat, periode, requetes from usage_par_periode":                                     "mende mende 2025-11-21 5",
			"select contrat, periode, fin, limite, utilise, restant, total, lignes, empreinte from usage_periodes": "mende 2025-11-21 2025-12-21 10 7 3 7 1 ab",
			"select cle, compte from usage_des_cles":                                                               "k1 mende",
			"select count(*) from usage_periodes where ouverte_le is not null and close_le >= ouverte_le":          "1",
			"select count(*) from usage_des_cles where cast(utilise_le as text) like '20%-%'":                      "1",
		} {
			if got := queryRow(t, s.Registry, address, question); got != want {
				t.Errorf("%s: got %q, want %q", question, got, want)
			}
		}
	})
}

// queryRow is the one row a question of people gives.
func queryRow(t *testing.T, registry *sqldb.Registry, address, question string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		question = strings.Replace(question, " from ", " from lieudit.", 1)
	}
	var text []string
	err := registry.Read(t.Context(), table.UsageModel, func(db *sqldb.DB) error {
		rows, err := db.Query(t.Context(), question)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			for _, c := range cells {
				text = append(text, fmt.Sprint(c))
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(text, " ")
}
