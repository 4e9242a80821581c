package account

import (
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// The row keeps when a scheduled membership began, as long as it lasts: readers compare it with the closing of the agency.
func TestARowSaysWhenAScheduledMembershipBegan(t *testing.T) {
	t.Parallel()
	day := func(n int) table.Instant { return table.InstantOf(time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC)) }
	var a table.Account
	for i, step := range []struct {
		agency         string
		from, recorded int
		want           table.Account
	}{
		{"g", 10, 1, table.Account{NextAgency: "g", NextAgencyFrom: day(10)}},
		{"h", 20, 11, table.Account{Agency: "g", AgencyBegan: day(10), NextAgency: "h", NextAgencyFrom: day(20)}},
		{"", 21, 12, table.Account{Agency: "g", AgencyBegan: day(10), NextAgencyFrom: day(21)}},
		{"k", 22, 22, table.Account{Agency: "k"}}, // at once
		{"", 30, 23, table.Account{Agency: "k", NextAgencyFrom: day(30)}},
	} {
		changeAgency(&a, step.agency, day(step.from), projector.Record{RecordedEvent: eventstore.RecordedEvent{Time: day(step.recorded).Time()}})
		if a != step.want {
			t.Errorf("step %d: got %+v, want %+v", i, a, step.want)
		}
	}
}
