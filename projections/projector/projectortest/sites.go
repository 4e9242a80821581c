package projectortest

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

const (
	rowsPerStagedEvent    = 64 // in one staged event
	stagedEventsPerAppend = 8  // in one append
)

// AppendSync appends rows as a large sync does: staged in a stream of their own, then made real by one commit. It returns the
// position of the commit.
func AppendSync(t testing.TB, log eventstore.Store, codec *eventstore.Codec, stream string, written event.SiteWriteSummary, rows []event.SiteRow) eventstore.Position {
	t.Helper()
	return Append(t, log, codec, stream, AppendStagedRows(t, log, codec, stream, written, rows))
}

// AppendStagedRows stages rows, and returns the commit that makes them real. The caller appends the commit, or leaves the
// rows staged. The commit's Digest is the SHA-256 of the staged events' data, concatenated.
func AppendStagedRows(t testing.TB, log eventstore.Store, codec *eventstore.Codec, stream string, written event.SiteWriteSummary, rows []event.SiteRow) event.SyncCommitted {
	t.Helper()
	e := event.SyncCommitted{SiteWriteSummary: written, SyncID: uuid.NewString(), RowCount: len(rows)}
	h := sha256.New()
	for len(rows) > 0 {
		var staged []event.Event
		for len(staged) < stagedEventsPerAppend && len(rows) > 0 {
			n := min(rowsPerStagedEvent, len(rows))
			staged = append(staged, event.SyncStaged{Rows: rows[:n]})
			rows = rows[n:]
		}
		batch, err := codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{Actor: Actor}, staged)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range batch {
			h.Write(p.Data)
		}
		if _, err := log.Append(t.Context(), "sync-"+e.SyncID, eventstore.Any, batch); err != nil {
			t.Fatal(err)
		}
		e.EventCount += len(batch)
	}
	e.Digest = h.Sum(nil)
	return e
}

// Sync is AppendSync on the fixture's log. The next call of Rows waits for the rows. written describes the request that wrote
// them in the commit.
func (s *Fixture) Sync(stream string, written event.SiteWriteSummary, rows []event.SiteRow) {
	s.t.Helper()
	s.lastPosition = AppendSync(s.t, s.Log, s.Codec, stream, written, rows)
}

// SiteRows returns n rows of one operation (event.SiteCreated and its like) and version, each with the content of
// SiteContent unless sites are deactivated. The i-th row is of the same site in every call.
func SiteRows(op string, version int64, n int) []event.SiteRow {
	rows := make([]event.SiteRow, n)
	for i := range rows {
		id := fmt.Sprintf("shop-%05d", i)
		rows[i] = event.SiteRow{ExternalID: id, SiteID: uuid.NewSHA1(uuid.Nil, []byte(id)).String(), Operation: op, Version: version}
		if op != event.SiteDeactivated {
			rows[i].Content, rows[i].Digest = SiteContent(i), make([]byte, 32)
		}
	}
	return rows
}

// SiteContent is the content of a site of the usual size, as the log keeps it: the JSON of a locations.StoredSite, before it
// is encrypted. Different n make different sites.
func SiteContent(n int) event.Personal {
	return event.Personal(fmt.Sprintf(`{"content":{"nom":"Boutique %d","adresse":{"ligne_1":"%d rue de la République","code_postal":"48000","commune":"Mende","pays":"FR"},`+
		`"horaires":{"hebdo":[{"jours":["lu","ma"],"de":"09:00","a":"12:00"},{"jours":["lu","ma"],"de":"14:00","a":"18:30"}]},"telephone":"+33 4 66 00 %02d %02d","site_web":"https://www.example.fr/boutiques/%d",`+
		`"tags":["pressing","retrait"]},"position":{"lat":44.5%05d,"lon":3.4%05d,"source":"ban","id_ban":"4f1a2b3c-0000-4000-8000-%012d","score":0.93}}`, n, n%200, n/100%100, n%100, n, n, n, n))
}
