package locations

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// EventLimits are the maximum bytes of an event and of an append with rows. An event of one row, and an append of one event,
// may be larger.
type EventLimits struct{ Event, Append int }

// DefaultEventLimits are those of a Locations for which LimitEvents was not called.
var DefaultEventLimits = EventLimits{Event: 64 << 10, Append: eventstore.MaxAppendBytes}

// eventOverhead is an upper bound on the bytes of an event without its rows, its envelope included.
const eventOverhead = 2 << 10

// stager makes the events of one command's changes. It is used by one goroutine, for one command. Rows of few bytes are one event.
// Others are staged first: they are appended to a stream of their own, where they have no effect until one commit in the account's
// stream names that stream. A decision that is repeated after a conflict with the same rows does not stage them
// again.
type stager struct {
	locations  *Locations
	account    string
	meta       commands.Metadata
	stagedRows []event.SiteRow     // by the last attempt
	commit     event.SyncCommitted // of stagedRows; EventCount is 0 if none were staged
}

func (l *Locations) newStager(account string, meta commands.Metadata) *stager {
	return &stager{locations: l, account: account, meta: meta}
}

// appendChanges returns the result of a decision to make the changes c. The rows are staged after the decision. If staging
// fails, nothing happens.
func (s *stager) appendChanges(c siteChanges) commands.Result {
	return commands.AppendBuilt(func(ctx context.Context) ([]event.Event, error) { return s.buildEvents(ctx, c) })
}

// buildEvents returns the events of a change: none if nothing changes and there is no Idempotency-Key to keep.
func (s *stager) buildEvents(ctx context.Context, c siteChanges) ([]event.Event, error) {
	switch {
	case len(c.rows) == 0 && c.IdempotencyKeyHash == "":
		return nil, nil
	case len(c.rows) == 0:
		return []event.Event{event.UnchangedWriteRecorded{SiteWriteSummary: c.SiteWriteSummary}}, nil
	case s.locations.limits.fitsOneEvent(c.rows):
		return []event.Event{event.SitesChanged{SiteWriteSummary: c.SiteWriteSummary, Rows: c.rows}}, nil
	}
	alreadyStaged, err := s.isStaged(ctx, c.rows)
	if err == nil && !alreadyStaged {
		err = s.stageRows(ctx, c.rows)
	}
	if err != nil {
		return nil, err
	}
	s.commit.SiteWriteSummary = c.SiteWriteSummary
	return []event.Event{s.commit}, nil
}

// isStaged reports whether the rows were staged by an earlier attempt and are on the log. They no longer are if the log was
// restored from an older backup since.
func (s *stager) isStaged(ctx context.Context, rows []event.SiteRow) (bool, error) {
	if s.commit.EventCount == 0 || !slices.EqualFunc(s.stagedRows, rows, equalRows) {
		return false, nil
	}
	stream, events, _ := s.commit.StagedStream()
	for _, err := range s.locations.store.ReadStream(ctx, stream, eventstore.Revision(events-1), eventstore.Forward) { // the last one
		return err == nil, err
	}
	return false, nil
}

// equalRows compares the fields that staging depends on. Digest and flags follow from the content.
func equalRows(a, b event.SiteRow) bool {
	return a.ExternalID == b.ExternalID && a.Operation == b.Operation && a.Version == b.Version && a.Content == b.Content
}

// stageRows appends the rows to a new stream and keeps the commit that names it. The commit has the digest of all event data,
// so that readers can check that the stream is complete. A stream whose commit is never appended stays on the log and changes
// nothing.
func (s *stager) stageRows(ctx context.Context, rows []event.SiteRow) error {
	id := uuid.New()
	commit := event.SyncCommitted{SyncID: id.String(), RowCount: len(rows)}
	staging, _, _ := commit.StagedStream()
	digest, last := sha256.New(), eventstore.NoStream
	for n, events := range s.locations.limits.splitIntoAppends(rows) {
		part := uuid.NewSHA1(id, []byte(strconv.Itoa(n)))
		batch, err := s.locations.codec.Encode(ctx, streamOf(s.account), part, s.meta.EventMetadata(id), events)
		if err != nil {
			return err
		}
		for _, p := range batch {
			digest.Write(p.Data)
		}
		done, err := eventstore.AppendUntilKnown(ctx, s.locations.store, staging, last, batch, eventstore.Resend{})
		if err != nil {
			return fmt.Errorf("append to %s: %w", staging, err)
		}
		last = done.Revision
		commit.EventCount += len(events)
	}
	commit.Digest = digest.Sum(nil)
	s.stagedRows, s.commit = rows, commit
	return nil
}

// splitIntoAppends splits rows into events, and these into appends.
func (l EventLimits) splitIntoAppends(rows []event.SiteRow) [][]event.Event {
	var appends [][]event.Event
	remaining := 0
	for len(rows) > 0 {
		n, weight := l.countFittingRows(rows)
		if remaining < weight {
			appends, remaining = append(appends, nil), l.Append
		}
		last := &appends[len(appends)-1]
		*last = append(*last, event.SyncStaged{Rows: rows[:n]})
		rows, remaining = rows[n:], remaining-weight
	}
	return appends
}

// fitsOneEvent reports whether rows need no staging. A single row never needs it, however large it is.
func (l EventLimits) fitsOneEvent(rows []event.SiteRow) bool {
	n, _ := l.countFittingRows(rows)
	return n == len(rows) && n > 0
}

// countFittingRows returns how many of the first rows fit into one event, at least one, and an upper bound on its bytes.
func (l EventLimits) countFittingRows(rows []event.SiteRow) (n, weight int) {
	weight = eventOverhead + maxRowSize(rows[0])
	for n = 1; n < len(rows) && weight+maxRowSize(rows[n]) <= l.Event; n++ {
		weight += maxRowSize(rows[n])
	}
	return n, weight
}

// maxRowSize returns an upper bound on the bytes of a row in an event's data, its content sealed. JSON may escape each byte of an
// id into six. rowOverhead is enough for the other members of the row, and sealOverhead for the nonce, the tag and the prefix
// of a sealed text.
func maxRowSize(r event.SiteRow) int {
	const rowOverhead, sealOverhead = 256, 64
	return rowOverhead + 6*len(r.ExternalID) + base64.RawStdEncoding.EncodedLen(sealOverhead+len(r.Content))
}
