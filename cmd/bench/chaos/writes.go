package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"lieudit/cmd/bench/model"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// referential is a referential with one client that writes to it, one request at a time. The model knows its possible states.
type referential struct {
	account *account
	code    string
	rows    int // the ids of its sites are below this

	edition       int                 // of the last write that was drawn
	lost          model.PlacesCommand // the last write, if its answer is missing: the client may send it again; nil: none
	lostWrites    int                 // since the last answer
	lastKeyedSync *model.SyncSites    // the last one that was answered; nil: none
}

// externalID returns the external id of a site.
func externalID(id int) string { return fmt.Sprintf("site-%05d", id) }

// nameOf returns the name of a site in an edition, the number of the write that it comes from.
func nameOf(id, edition int) string { return fmt.Sprintf("Comptoir %d édition %d", id, edition) }

// contentOf returns the content of a site with a name. The name is in it twice: a site that shows two different ones mixes two writes.
func contentOf(id int, name string) locations.Content {
	lat, lon := 42+float64(id%900)/100, 1+float64(id%700)/100
	properties, _ := json.Marshal(map[string]string{"nom": name, "lieu": model.Place(lat, lon)}) // never fails for strings
	return locations.Content{
		Name:    name,
		Address: &locations.SiteAddress{Line1: fmt.Sprintf("%d rue des Essais", id+1), PostalCode: "48000", City: "Mende"},
		Lat:     &lat, Lon: &lon, Tags: []string{"comptoir"},
		Properties: properties,
	}
}

// contentOfRow is contentOf for a row of a sync.
func contentOfRow(row model.Row) locations.Content {
	var id int
	if _, err := fmt.Sscanf(row.ExternalID, "site-%d", &id); err != nil {
		panic(err) // rows are made of externalID
	}
	return contentOf(id, row.Name)
}

// newRequest returns the request that sends a write. A patch sends only the fields that depend on the name.
func (f *referential) newRequest(w model.PlacesCommand) request {
	base := "/locations/referentiels/" + f.code + "/sites"
	const oneSite = "/locations/referentiels/{code}/sites"
	q := request{account: f.account, label: f.account.label, key: f.account.key, method: http.MethodPost, command: w}
	switch w := w.(type) {
	case model.SyncSites:
		verb := ":sync"
		if w.IsUpsert {
			verb = ":upsert"
		}
		q.path, q.endpoint, q.body, q.idempotencyKey = base+verb, "POST "+oneSite+verb, batchBody(w), w.IdempotencyKey
	case model.PutSite:
		q.method, q.path, q.endpoint = http.MethodPut, base+"/"+w.ExternalID, "PUT "+oneSite+"/{external_id}"
		q.body, _ = json.Marshal(contentOfRow(model.Row{ExternalID: w.ExternalID, Name: w.Name})) // never fails for this type
	case model.PatchSite:
		q.method, q.path, q.endpoint = http.MethodPatch, base+"/"+w.ExternalID, "PATCH "+oneSite+"/{external_id}"
		q.body, _ = json.Marshal(map[string]any{"nom": w.Name, "proprietes": map[string]string{"nom": w.Name}}) // never fails for strings
	case model.SwitchSite:
		verb := ":deactivate"
		if w.On {
			verb = ":reactivate"
		}
		q.path, q.endpoint, q.body = base+"/"+w.ExternalID+verb, "POST "+oneSite+"/{external_id}"+verb, []byte("{}")
	}
	return q
}

// batchBody returns the body of a sync or an upsert.
func batchBody(w model.SyncSites) []byte {
	all := body.SyncSites{Sites: make([]body.SiteRow, len(w.Rows)), ConfirmReduction: w.ConfirmsReduction, DryRun: w.IsDryRun}
	for i, row := range w.Rows {
		all.Sites[i] = body.SiteRow{ExternalID: row.ExternalID, Content: contentOfRow(row)}
	}
	text, _ := json.Marshal(all) // never fails for this type
	return text
}

// drawWrite returns a random write in a new edition: four of ten are syncs, two are upserts, four concern one site. It starts from one of the
// possible states, so that the write fits the sites that may exist.
func (f *referential) drawWrite(now map[string]model.KnownSite, rng *rand.Rand) model.PlacesCommand {
	f.edition++
	hasActive := false
	for _, s := range now {
		hasActive = hasActive || s.IsActive
	}
	if kind := rng.IntN(10); kind < 4 || !hasActive {
		return f.drawSync(now, rng)
	} else if kind < 6 {
		return f.drawUpsert(rng)
	}
	id := rng.IntN(f.rows)
	switch rng.IntN(5) {
	case 0, 1:
		return f.newPut(id)
	case 2:
		return model.PatchSite{Code: f.code, ExternalID: externalID(id), Name: nameOf(id, f.edition)}
	case 3:
		return model.SwitchSite{Code: f.code, ExternalID: externalID(id)}
	}
	return model.SwitchSite{Code: f.code, ExternalID: externalID(id), On: true}
}

// newPut returns a write of a site in the current edition.
func (f *referential) newPut(id int) model.PutSite {
	return model.PutSite{Code: f.code, ExternalID: externalID(id), Name: nameOf(id, f.edition)}
}

// drawSync returns a random sync. Usually most of its sites exist already, and some are changed, missing or new; sometimes it has far fewer
// sites, or all that the referential may have. The three shares are the part of the active sites that it changes, the part that it keeps, and
// the part of the other sites that it adds. One in four does not confirm a large reduction, so it may be refused; one in three has an
// Idempotency-Key.
func (f *referential) drawSync(now map[string]model.KnownSite, rng *rand.Rand) model.SyncSites {
	w := model.SyncSites{Code: f.code, ConfirmsReduction: rng.IntN(4) > 0}
	changeShare := []float64{0, 0.01, 0.2, 1}[rng.IntN(4)]
	keepShare := []float64{1, 0.98, 0.7, 0.3}[rng.IntN(4)]
	addShare := []float64{0, 0.02, 0.5, 1}[rng.IntN(4)]
	for id := range f.rows {
		had := now[externalID(id)]
		row := model.Row{ExternalID: externalID(id), Name: nameOf(id, f.edition)}
		switch {
		case had.IsActive && rng.Float64() < keepShare:
			if rng.Float64() >= changeShare {
				row.Name = had.Name
			}
			w.Rows = append(w.Rows, row)
		case !had.IsActive && rng.Float64() < addShare:
			w.Rows = append(w.Rows, row)
		}
	}
	if rng.IntN(3) == 0 {
		w.IdempotencyKey = fmt.Sprintf("sync-%s-%d", f.code, f.edition)
	}
	return w
}

// drawUpsert returns a random upsert, whose sites all have the same edition.
func (f *referential) drawUpsert(rng *rand.Rand) model.SyncSites {
	w := model.SyncSites{Code: f.code, IsUpsert: true}
	share := []float64{0.01, 0.1, 0.4}[rng.IntN(3)]
	for id := range f.rows {
		if rng.Float64() < share {
			w.Rows = append(w.Rows, model.Row{ExternalID: externalID(id), Name: nameOf(id, f.edition)})
		}
	}
	return w
}

// activeRows returns the rows of a sync that changes none of the sites.
func activeRows(now map[string]model.KnownSite) (rows []model.Row) {
	for _, s := range now {
		if s.IsActive {
			rows = append(rows, model.Row{ExternalID: s.ExternalID, Name: s.Name})
		}
	}
	slices.SortFunc(rows, func(a, b model.Row) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return rows
}
