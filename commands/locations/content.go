package locations

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
)

// readContent reads a content by its reference from the log. The content of an erased account is empty.
func (l *Locations) readContent(ctx context.Context, account string, contentAt contentRef) (locations.StoredSite, error) {
	r := contentReader{locations: l, account: account}
	return r.read(ctx, contentAt)
}

// readStored returns the contents that sites had when they were classified. It sorts the sites by the order of the log and
// reads in parallel.
func (l *Locations) readStored(ctx context.Context, account string, sites []*wantedSite) ([]locations.StoredSite, error) {
	slices.SortFunc(sites, func(a, b *wantedSite) int { return a.current.contentAt.compare(b.current.contentAt) })
	stored := make([]locations.StoredSite, len(sites))
	size := len(sites)/runtime.GOMAXPROCS(0) + 1
	var group errgroup.Group
	for start := 0; start < len(sites); start += size {
		group.Go(func() error {
			r := contentReader{locations: l, account: account}
			for i := start; i < min(start+size, len(sites)); i++ {
				var err error
				if stored[i], err = r.read(ctx, sites[i].current.contentAt); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return stored, nil
}

// contentReader reads contents of an account from the log. It keeps the event that it read last, so contents that are read in
// the order of the log cost one read per event. A contentReader with only its first two fields set is ready.
type contentReader struct {
	locations *Locations
	account   string
	hasRead   bool
	revision  eventstore.Revision // of event
	event     event.Event         // in the account's stream
	staged    int32               // the number of the event that rows are from, if event is a commit
	rows      []event.SiteRow
}

// read reads one content. The content of an erased account is empty.
func (r *contentReader) read(ctx context.Context, contentAt contentRef) (locations.StoredSite, error) {
	if !r.hasRead || r.revision != contentAt.revision || r.staged != contentAt.stagedEvent {
		if err := r.readRows(ctx, contentAt); err != nil {
			r.hasRead = false
			return locations.StoredSite{}, err
		}
	}
	if int(contentAt.row) >= len(r.rows) {
		return locations.StoredSite{}, fmt.Errorf("%s@%d has no row %d", streamOf(r.account), contentAt.revision, contentAt.row)
	}
	return r.locations.unsealContent(ctx, r.account, r.rows[contentAt.row])
}

// readRows reads the event that holds a content, and first the commit that names its stream.
func (r *contentReader) readRows(ctx context.Context, contentAt contentRef) (err error) {
	if !r.hasRead || r.revision != contentAt.revision {
		if _, r.event, err = r.locations.readEvent(ctx, streamOf(r.account), contentAt.revision); err != nil {
			return err
		}
	}
	e := r.event
	if commit, ok := e.(event.SyncCommitted); ok {
		staging, _, _ := commit.StagedStream()
		if _, e, err = r.locations.readEvent(ctx, staging, eventstore.Revision(contentAt.stagedEvent)); err != nil {
			return err
		}
	}
	r.hasRead, r.revision, r.staged, r.rows = true, contentAt.revision, contentAt.stagedEvent, rowsOf(e)
	return nil
}

// rowsOf returns the rows of the two events that have contents.
func rowsOf(e event.Event) []event.SiteRow {
	switch e := e.(type) {
	case event.SitesChanged:
		return e.Rows
	case event.SyncStaged:
		return e.Rows
	}
	return nil
}

// unsealContent decrypts a row's content with the account's data key. The content of an erased account is the zero StoredSite,
// without an error.
func (l *Locations) unsealContent(ctx context.Context, account string, r event.SiteRow) (locations.StoredSite, error) {
	var s locations.StoredSite
	text, err := l.codec.Unseal(ctx, streamOf(account), r.Content)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		err = fmt.Errorf("content of site %s: %w", r.SiteID, err)
	}
	return s, err
}

// readEvent reads the event of a stream at a revision. Personal fields are sealed. It is an error if there is none: callers
// only ask for events that the state refers to.
func (l *Locations) readEvent(ctx context.Context, streamName string, at eventstore.Revision) (eventstore.RecordedEvent, event.Event, error) {
	for r, err := range l.store.ReadStream(ctx, streamName, at, eventstore.Forward) {
		if err != nil {
			return r, nil, fmt.Errorf("read %s: %w", streamName, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		return r, e, err
	}
	return eventstore.RecordedEvent{}, nil, fmt.Errorf("read %s: nothing at %d", streamName, at)
}

// readOutcome reads back the outcome of the write that the event at a revision recorded. A repeated request with the same
// Idempotency-Key gets this answer again.
func (l *Locations) readOutcome(ctx context.Context, account string, at eventstore.Revision) (Outcome, error) {
	r, e, err := l.readEvent(ctx, streamOf(account), at)
	if err != nil {
		return Outcome{}, err
	}
	switch e := e.(type) {
	case event.UnchangedWriteRecorded:
		return Outcome{SiteWriteSummary: e.SiteWriteSummary}, nil
	case event.SitesChanged:
		return l.addRows(ctx, account, Outcome{SiteWriteSummary: e.SiteWriteSummary}, e.Rows)
	case event.SyncCommitted:
		rows, err := l.readStagedRows(ctx, r, e)
		if err != nil {
			return Outcome{}, err
		}
		return l.addRows(ctx, account, Outcome{SiteWriteSummary: e.SiteWriteSummary}, rows)
	}
	return Outcome{}, fmt.Errorf("%s@%d answers no request", r.Stream, r.Revision)
}

// readStagedRows returns the rows that a commit committed, in the order in which they were staged.
func (l *Locations) readStagedRows(ctx context.Context, commit eventstore.RecordedEvent, e event.SyncCommitted) ([]event.SiteRow, error) {
	events, err := eventstore.ReadStagedEvents(ctx, l.store, commit, e)
	rows := make([]event.SiteRow, 0, e.RowCount)
	for _, r := range events {
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowsOf(e)...)
	}
	return rows, err
}

// addRows adds the changes and the geocoded positions of its rows to an outcome.
func (l *Locations) addRows(ctx context.Context, account string, o Outcome, rows []event.SiteRow) (Outcome, error) {
	o.Changes = listChanges(rows)
	for _, r := range rows {
		var p *locations.Position
		if r.Geocoded {
			s, err := l.unsealContent(ctx, account, r)
			if err != nil {
				return o, err
			}
			p = s.Position
		}
		o.addPosition(r, p)
	}
	return o, nil
}
