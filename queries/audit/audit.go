// Package audit lists what happened in an account, from the read model that projections/audit fills (table.AuditModel).
// Entries are in the order of the log, or the newest first, and a page begins after the EntryKey of the last entry shown, so
// pages neither repeat nor skip entries while events arrive. Part is 0 for the entry of an event, and numbers the entries of the sites
// that an event changed.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// Reader answers from the read model. It is safe for concurrent use.
type Reader struct{ registry *sqldb.Registry }

// New makes a Reader of a registry's read model.
func New(registry *sqldb.Registry) *Reader { return &Reader{registry} }

// Query selects a part of an account's audit trail.
type Query struct {
	Account  string
	Kind     string    // one of table.AuditKind…; "" for all
	Subject  string    // only entries about it: an id, a referential's code, or table.AuditSiteSubject; "" for all
	From     time.Time // the earliest time of recording; zero for no bound
	To       time.Time // only entries recorded before; zero for no bound
	Summary  bool      // one entry per event, without those of the sites that it changed
	Newest   bool      // the newest entries first
	After    EntryKey  // of the last entry of the page before; zero for the first page
	Limit    int       // at least 1
	MaxBytes int       // a page ends with the entry at which the data reaches this many bytes; 0 means no limit
}

// EntryKey orders entries: by the event's position in the log, then by the part of what the event did.
type EntryKey struct{ Position, Part uint64 }

// ErrInvalidCursor means that the cursor was not made by Cursor.
var ErrInvalidCursor = errors.New("not a cursor")

// Cursor returns the key as a text for callers of the API.
func (p EntryKey) Cursor() string {
	return strconv.FormatUint(p.Position, 10) + "." + strconv.FormatUint(p.Part, 10)
}

// ParseCursor returns the key of a cursor, or ErrInvalidCursor.
func ParseCursor(cursor string) (p EntryKey, err error) {
	position, part, _ := strings.Cut(cursor, ".")
	p.Position, err = strconv.ParseUint(position, 10, 63)
	if err == nil {
		p.Part, err = strconv.ParseUint(part, 10, 63)
	}
	if err != nil {
		return EntryKey{}, ErrInvalidCursor
	}
	return p, nil
}

// Entry is one event, or what one event did to one site.
type Entry struct {
	EntryKey
	Account    string
	Time       time.Time
	Type       string // the event's wire name
	Kind       string
	Subject    string // the id of the key, the account or the token; the referential's code, or table.AuditSiteSubject
	Actor      string
	OnBehalfOf string // the account an agency acted for
	Reason     string
	Sentence   string
	Data       json.RawMessage // the event without secrets and without its sites; personal texts are empty once the account is erased
}

// FrenchSentence is Sentence in French, made of Data.
func (e Entry) FrenchSentence() string {
	code, _, isSite := strings.Cut(e.Subject, "/")
	var row event.SiteRow
	if e.Kind == table.AuditKindSites && isSite && json.Unmarshal(e.Data, &row) == nil {
		return row.FrenchSentence(code)
	}
	return event.FrenchSentence(e.Type, e.Data)
}

// ListEntries answers a query, the oldest entries first unless the newest are asked for. more reports whether there are entries after the last one. It
// fails with a *table.StoppedError while the account is stopped.
func (t *Reader) ListEntries(ctx context.Context, q Query) (found []Entry, more bool, err error) {
	where, args := q.whereClause()
	var rows []table.AuditEntry
	var texts map[int64]table.AuditText
	err = t.registry.ReadAccount(ctx, table.AuditModel, q.Account, func(db *sqldb.DB) error {
		rows, more, err = sqldb.SelectWithin(ctx, db, table.AuditEntries, sqldb.Range[table.AuditEntry]{
			Where: where, Args: args, Order: "account, position, part", IsDown: q.Newest, Column: "data",
			Text: func(e *table.AuditEntry) string { return e.Data }, Rows: q.Limit, Bytes: cmp.Or(q.MaxBytes, math.MaxInt),
		})
		if err == nil {
			texts, err = selectTexts(ctx, db, q.Account, rows)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	found = make([]Entry, len(rows))
	for i, r := range rows {
		found[i] = Entry{EntryKey{uint64(r.Position), uint64(r.Part)}, r.Account, r.Recorded.Time(), r.Type, r.Kind, r.Subject,
			r.Actor, r.OnBehalfOf, texts[r.Position].Reason, r.Sentence, json.RawMessage(cmp.Or(texts[r.Position].Data, r.Data))}
	}
	return found, more, nil
}

// selectTexts reads what people typed into the events of some entries of an account, by the position of the event.
func selectTexts(ctx context.Context, db *sqldb.DB, account string, entries []table.AuditEntry) (map[int64]table.AuditText, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	first, last := entries[0].Position, entries[len(entries)-1].Position
	rows, err := sqldb.Select(ctx, db, table.AuditTexts, "where account = ? and position >= ? and position <= ?", account, min(first, last), max(first, last))
	texts := make(map[int64]table.AuditText, len(rows))
	for _, r := range rows {
		texts[r.Position] = r
	}
	return texts, err
}

// whereClause returns the SQL condition of the query, with its arguments.
func (q Query) whereClause() (string, []any) {
	where, args := "account = ?", []any{q.Account}
	if q.After != (EntryKey{}) {
		where += map[bool]string{false: " and (position, part) > (?, ?)", true: " and (position, part) < (?, ?)"}[q.Newest]
		args = append(args, int64(q.After.Position), int64(q.After.Part))
	}
	for _, bound := range []struct {
		wanted    bool
		condition string
		value     any
	}{
		{q.Kind != "", "kind = ?", q.Kind},
		{q.Subject != "", "subject = ?", q.Subject},
		{!q.From.IsZero(), "recorded >= ?", q.From.UnixMicro()},
		{!q.To.IsZero(), "recorded < ?", q.To.UnixMicro()},
		{q.Summary, "part = ?", 0},
	} {
		if bound.wanted {
			where, args = where+" and "+bound.condition, append(args, bound.value)
		}
	}
	return where, args
}
