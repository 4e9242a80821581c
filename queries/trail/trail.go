// Package trail answers what happened in an account, from the history: what an auditor reads, in the order of the
// log. A page begins after a position, so that pages neither repeat nor skip while events come in.
package trail

import (
	"context"
	"encoding/json"
	"time"

	"lieudit/schemas/table"
)

// Trail is the asking side of the history. It is safe for concurrent use.
type Trail struct{ shelf *table.Shelf }

// New asks the copies on a shelf.
func New(shelf *table.Shelf) *Trail { return &Trail{shelf} }

// Question is which part of an account's history is wanted.
type Question struct {
	Account string
	Kind    string    // table.KindKeys, KindAccount or KindToken; "" for all
	From    time.Time // nothing recorded earlier; zero for no bound
	To      time.Time // only what was recorded earlier; zero for no bound
	After   uint64    // the position of the last entry that is known already
	Limit   int       // at least 1
}

// Entry is one event.
type Entry struct {
	Position   uint64
	Account    string
	Time       time.Time
	Type       string // the event's wire name
	Kind       string
	Subject    string // the id of the key, the account or the token
	Actor      string
	OnBehalfOf string // the account an agency acted for
	Reason     string
	Sentence   string
	Data       json.RawMessage // the event, without anything personal or secret
}

// History answers a question, the oldest first. more says whether there is anything after the last entry.
func (t *Trail) History(ctx context.Context, q Question) (found []Entry, more bool, err error) {
	where, args := q.where()
	var rows []table.Entry
	err = t.shelf.Read(ctx, table.History, func(db *table.DB) error {
		rows, err = table.Select(ctx, db, table.Entries, where+" order by account, position limit ?", append(args, q.Limit+1)...)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > q.Limit; more {
		rows = rows[:q.Limit]
	}
	found = make([]Entry, len(rows))
	for i, r := range rows {
		found[i] = Entry{uint64(r.Position), r.Account, r.Recorded.Time(), r.Type, r.Kind, r.Subject,
			r.Actor, r.OnBehalfOf, r.Reason, r.Sentence, json.RawMessage(r.Data)}
	}
	return found, more, nil
}

func (q Question) where() (string, []any) {
	where, args := "where account = ? and position > ?", []any{q.Account, int64(q.After)}
	for _, bound := range []struct {
		wanted    bool
		condition string
		value     any
	}{
		{q.Kind != "", "kind = ?", q.Kind},
		{!q.From.IsZero(), "recorded >= ?", q.From.UnixMicro()},
		{!q.To.IsZero(), "recorded < ?", q.To.UnixMicro()},
	} {
		if bound.wanted {
			where, args = where+" and "+bound.condition, append(args, bound.value)
		}
	}
	return where, args
}
