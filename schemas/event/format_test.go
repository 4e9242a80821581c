package event_test

import (
	"slices"
	"strings"
	"testing"

	"lieudit/schemas/event"
)

// firstTypes are the wire names known to every program that may share a log with this one. The list never grows: a later type
// names the log format that it needs in the catalog.
const firstTypes = `
account.action-refused.v1
account.agency-activated.v1
account.agency-joined.v1
account.agency-left.v1
account.closed.v1
account.erased.v1
account.event-voided.v1
account.key-origins-changed.v1
account.key-revoked.v1
account.opened.v1
account.plan-changed.v1
account.publishable-key-issued.v1
account.secret-key-issued.v1
incarnation.ended.v1
incarnation.started.v1
locations.event-voided.v1
locations.referential-archived.v1
locations.referential-opened.v1
locations.referential-renamed.v1
locations.request-kept.v1
locations.sites-changed.v1
locations.sync-committed.v1
sync.staged.v1
token.event-voided.v1
token.issued.v1
token.revoked.v1
usage.account-closed.v1
usage.adjusted.v1
usage.balanced.v1
usage.cap-set.v1
usage.closed.v1
usage.key-revoked.v1
usage.opened.v1
usage.refunded.v1
usage.ticked.v1
`

// An older program stops at an event type that it does not know, so every type that is not on the list must name the log
// format that allows it.
func TestEveryTypeSinceTheFirstReleasesSaysWhichFormatItNeeds(t *testing.T) {
	t.Parallel()
	first := strings.Fields(firstTypes)
	for _, e := range event.All() {
		isFirst := slices.Contains(first, e.Name)
		if isFirst == e.SaysFormat() {
			t.Errorf("%s: it was in the first releases: %t, it says which format it needs: %t", e.Name, isFirst, e.SaysFormat())
		}
		if f := e.MinFormat(); f < event.FirstFormat || f > event.HighestFormat {
			t.Errorf("%s needs format %d, the formats are %d to %d", e.Name, f, event.FirstFormat, event.HighestFormat)
		}
	}
	for _, name := range first {
		if _, ok := event.Lookup(name); !ok {
			t.Errorf("%s is on logs and not in the catalog any more", name)
		}
	}
}
