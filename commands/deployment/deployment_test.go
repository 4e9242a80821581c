package deployment_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
)

var operator = commands.Metadata{Actor: "operator"}

// newDeployments returns a function that makes handlers on one log, as several instances have them, and one that counts its
// events.
func newDeployments(t *testing.T) (newHandler func() *deployment.Deployment, countEvents func() int) {
	t.Helper()
	log := openJournal(t)
	newHandler = func() *deployment.Deployment {
		return deployment.New(log, eventstore.NewCodec(nil), "v1.2.3")
	}
	return newHandler, func() int {
		n, err := log.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func TestAnotherUsageLogIsRefusedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	newHandler, countEvents := newDeployments(t)
	d, first, second := newHandler(), uuid.New(), uuid.New()
	for range 2 {
		if err := d.BindUsageLog(t.Context(), operator, first); err != nil {
			t.Fatal(err)
		}
	}
	err := newHandler().BindUsageLog(t.Context(), operator, second)
	var refused *deployment.OtherUsageLogError
	if !errors.As(err, &refused) || refused.Bound != first || refused.Found != second || countEvents() != 1 {
		t.Errorf("another log: %v, %d events; want a refusal that names both and 1 event", err, countEvents())
	}
	for range 2 {
		if err := d.ReplaceUsageLog(t.Context(), operator, second); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.BindUsageLog(t.Context(), operator, second); err != nil || countEvents() != 2 {
		t.Errorf("after it was accepted: %v, %d events; want nil and 2", err, countEvents())
	}
}

func TestRestoresAreRecorded(t *testing.T) {
	t.Parallel()
	newHandler, _ := newDeployments(t)
	taken := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	if before, err := newHandler().State(t.Context()); err != nil || before.LastRestore != nil {
		t.Errorf("before: %+v, %v; want no restore", before, err)
	}
	if err := newHandler().RecordRestore(t.Context(), operator, taken, 4711); err != nil {
		t.Fatal(err)
	}
	got, err := newHandler().State(t.Context())
	if err != nil || got.LastRestore == nil || !got.LastRestore.TakenAt.Equal(taken) || got.LastRestore.Position != 4711 ||
		got.LastRestore.Program != "v1.2.3" || got.RestoredAt.IsZero() {
		t.Errorf("after: %+v, %v", got, err)
	}
}
