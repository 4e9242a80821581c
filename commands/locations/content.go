package locations

import (
	"context"
	"encoding/json"
	"fmt"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

// stored is a content from where it stands on the log. One that was erased is empty.
func (l *Locations) stored(ctx context.Context, account string, at place) (site.Stored, error) {
	_, e, err := l.event(ctx, stream(account), at.revision)
	if commit, ok := e.(event.SyncCommitted); ok && err == nil {
		name, _, _ := commit.Staging()
		_, e, err = l.event(ctx, name, eventstore.Revision(at.staged))
	}
	if err != nil {
		return site.Stored{}, err
	}
	rows := rowsOf(e)
	if int(at.row) >= len(rows) {
		return site.Stored{}, fmt.Errorf("%s@%d has no row %d", stream(account), at.revision, at.row)
	}
	return l.reveal(ctx, account, rows[at.row])
}

func rowsOf(e event.Event) []event.SiteRow {
	switch e := e.(type) {
	case event.SitesChanged:
		return e.Rows
	case event.SyncStaged:
		return e.Rows
	}
	return nil
}

func (l *Locations) reveal(ctx context.Context, account string, r event.SiteRow) (site.Stored, error) {
	var s site.Stored
	text, err := l.codec.Reveal(ctx, stream(account), r.Content)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		err = fmt.Errorf("content of site %s: %w", r.Site, err)
	}
	return s, err
}

// event is the event of a stream at a revision, its personal fields sealed.
func (l *Locations) event(ctx context.Context, name string, at eventstore.Revision) (eventstore.Recorded, event.Event, error) {
	for r, err := range l.store.ReadStream(ctx, name, at, eventstore.Forward) {
		if err != nil {
			return r, nil, fmt.Errorf("read %s: %w", name, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		return r, e, err
	}
	return eventstore.Recorded{}, nil, fmt.Errorf("read %s: nothing at %d", name, at)
}

// recall is the outcome that the event at a revision tells of.
func (l *Locations) recall(ctx context.Context, account string, at eventstore.Revision) (Outcome, error) {
	r, e, err := l.event(ctx, stream(account), at)
	if err != nil {
		return Outcome{}, err
	}
	switch e := e.(type) {
	case event.RequestKept:
		return Outcome{SitesWritten: e.SitesWritten}, nil
	case event.SitesChanged:
		return l.told(ctx, account, Outcome{SitesWritten: e.SitesWritten}, e.Rows)
	case event.SyncCommitted:
		rows, err := l.staged(ctx, r, e)
		if err != nil {
			return Outcome{}, err
		}
		return l.told(ctx, account, Outcome{SitesWritten: e.SitesWritten}, rows)
	}
	return Outcome{}, fmt.Errorf("%s@%d answers no request", r.Stream, r.Revision)
}

func (l *Locations) staged(ctx context.Context, commit eventstore.Recorded, e event.SyncCommitted) ([]event.SiteRow, error) {
	events, err := eventstore.Staged(ctx, l.store, commit, e)
	rows := make([]event.SiteRow, 0, e.Rows)
	for _, r := range events {
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowsOf(e)...)
	}
	return rows, err
}

// told is an outcome with what its rows tell.
func (l *Locations) told(ctx context.Context, account string, o Outcome, rows []event.SiteRow) (Outcome, error) {
	for _, r := range rows {
		var p *site.Position
		if r.Placed {
			s, err := l.reveal(ctx, account, r)
			if err != nil {
				return o, err
			}
			p = s.Position
		}
		o.tell(r, p)
	}
	return o, nil
}
