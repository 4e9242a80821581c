package deployment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
)

func TestFormatsOnlyRise(t *testing.T) {
	t.Parallel()
	newHandler, countEvents := newDeployments(t)
	d, other := newHandler(), newHandler()
	for _, step := range []struct{ raise, want, events int }{{1, 1, 0}, {3, 3, 1}, {2, 3, 1}, {3, 3, 1}, {4, 4, 2}} {
		if err := d.RaiseFormat(t.Context(), operator, step.raise); err != nil {
			t.Fatal(err)
		}
		got, err := other.State(t.Context())
		if err != nil || got.Format() != step.want || countEvents() != step.events {
			t.Errorf("after raising to %d: format %d, %d events, %v; want %d, %d", step.raise, got.Format(), countEvents(), err, step.want, step.events)
		}
	}
}

func TestAFormatIsWrittenOnlyOnceTheLogHasIt(t *testing.T) {
	t.Parallel()
	newHandler, _ := newDeployments(t)
	writer, finisher := newHandler(), newHandler()
	for _, step := range []struct {
		raise, ask int
		want       bool
	}{{1, 1, true}, {1, 2, false}, {2, 2, true}, {2, 1, true}, {2, 3, false}} {
		if err := finisher.RaiseFormat(t.Context(), operator, step.raise); err != nil {
			t.Fatal(err)
		}
		if got, err := writer.HasFormat(t.Context(), step.ask); err != nil || got != step.want {
			t.Errorf("format %d of a log of format %d: got %t, %v; want %t", step.ask, step.raise, got, err, step.want)
		}
	}
}

// A format that was seen once is not asked for again: a write needs no read of the log for it, nor the log to answer.
func TestAFormatThatWasSeenNeedsNoLog(t *testing.T) {
	t.Parallel()
	log := openJournal(t)
	d := deployment.New(log, eventstore.NewCodec(nil), "v1.2.3")
	if err := d.RaiseFormat(t.Context(), operator, event.HighestFormat); err != nil {
		t.Fatal(err)
	}
	if has, err := d.HasFormat(t.Context(), event.HighestFormat); err != nil || !has {
		t.Fatalf("got %t, %v", has, err)
	}
	log.Close()
	if has, err := d.HasFormat(t.Context(), event.HighestFormat); err != nil || !has {
		t.Errorf("without the log: got %t, %v; want true", has, err)
	}
	if has, err := d.HasFormat(t.Context(), event.HighestFormat+1); err == nil || has {
		t.Errorf("a higher one without the log: got %t, %v; want an error", has, err)
	}
}

func TestALogOfALaterProgramIsRefusedInWords(t *testing.T) {
	t.Parallel()
	log := openJournal(t)
	later := deployment.New(log, eventstore.NewCodec(nil), "v9.0.0")
	if err := later.RaiseFormat(t.Context(), operator, event.HighestFormat+7); err != nil {
		t.Fatal(err)
	}
	// The later program has also written what this one cannot decode.
	unknown := []eventstore.ProposedEvent{{ID: uuid.New(), Type: "deployment.of-a-later-program.v1", Data: []byte("{}"), Metadata: []byte("{}")}}
	if _, err := eventstore.AppendUntilKnown(t.Context(), log, "deployment-log", eventstore.Any, unknown, eventstore.Resend{}); err != nil {
		t.Fatal(err)
	}
	_, err := deployment.New(log, eventstore.NewCodec(nil), "v1.2.3").CheckFormat(t.Context())
	var refused *deployment.UnknownFormatError
	if !errors.As(err, &refused) || refused.Format != event.HighestFormat+7 || !strings.Contains(err.Error(), "start lieudit v9.0.0 or a later version") {
		t.Errorf("got %v, want a refusal that names the version to start", err)
	}
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	log, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}
