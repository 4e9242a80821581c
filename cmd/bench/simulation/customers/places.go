package customers

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"time"

	"lieudit/cmd/bench/model"
)

// LargeSync is the kind of acts whose rows usually do not fit into one event and need several appends: they are staged.
const LargeSync = "large sync"

// placesKinds are what customers do with their own sites.
func placesKinds() []kind {
	return []kind{
		{"open referential", 6, (*Customers).openReferential, 0, 0, true},
		{"rename referential", 2, (*Customers).renameReferential, 0, 0, true},
		{"archive referential", 1, (*Customers).archiveReferential, 0, 0, true},
		{"put site", 8, (*Customers).putSite, 0, 0, true},
		{"puts at once", 2, (*Customers).putSite, 0, 4, true},
		{"correct site", 3, (*Customers).correctSite, 4, 0, true},
		{"patch site", 4, (*Customers).patchSite, 0, 0, true},
		{"patches at once", 2, (*Customers).patchSite, 0, 4, true},
		{"switch site", 4, (*Customers).switchSite, 0, 3, true},
		{"sync", 8, (*Customers).sync, 12, 0, true},
		{LargeSync, 3, (*Customers).sync, 60, 0, true},
		{"contradicting syncs", 2, (*Customers).contradict, 8, 3, true},
		{"repeated sync", 3, (*Customers).repeat, 8, 3, true},
		{"follow changes", 5, (*Customers).followChanges, 0, 0, false},
		{"show site", 3, (*Customers).showSite, 0, 0, false},
		{"list sites", 3, (*Customers).listSites, 0, 0, false},
		{"show referential", 1, (*Customers).showReferential, 0, 0, false},
		{"export sites", 2, (*Customers).exportSites, 0, 0, false},
	}
}

// codes are the codes of all referentials.
var codes = []string{"lieux-0", "lieux-1", "lieux-2", "lieux-3", "lieux-4", "lieux-5", "lieux-6"}

// code and site identify what an act concerns. There are few of them, so that acts meet.
func (act actDetails) code() string { return cmp.Or(act.Code, codes[act.Pick%len(codes)]) }
func (act actDetails) site() string { return fmt.Sprintf("s%d", act.Pick/7%6) }

// pickReferential returns the code of the referential that an act concerns: usually an open one, which the account opens if it has none; now
// and then any, so that some are missing or archived.
func (c *Customers) pickReferential(ctx context.Context, act actDetails) string {
	if act.Pick/64%8 == 0 {
		return act.code()
	}
	open := c.Model.OpenReferentials(act.Account)
	if len(open) == 0 {
		c.openReferential(ctx, act)
		return act.code()
	}
	return open[act.Pick%len(open)]
}

// write sends a command on sites with a key of the act's account.
func (c *Customers) write(ctx context.Context, act actDetails, command model.PlacesCommand, endpoint string, m message) Answer {
	op := act.operation(act.Account)
	op.Service, op.Endpoint, op.Weight, op.OnPlaces = model.Locations, endpoint, 1, command
	var ok bool
	if op.Key, ok = c.key(ctx, act); !ok {
		return Answer{}
	}
	return c.send(ctx, op, m)
}

const (
	referentialEndpoint = "/locations/referentiels/{code}"
	siteEndpoint        = referentialEndpoint + "/sites/{external_id}"
)

func (act actDetails) referentialPath() string { return "/locations/referentiels/" + act.code() }
func (act actDetails) sitePath() string        { return act.referentialPath() + "/sites/" + act.site() }

// content returns the content of a site with a name. The name is in it twice, so that half of it differs from the whole, and so is the
// position. One site in four has no position, and is to be found by its address.
func (c *Customers) content(name string) map[string]any {
	properties, sum := map[string]any{"nom": name}, crc32.ChecksumIEEE([]byte(name))
	if sum%16 == 0 {
		properties["accueil"] = bulk
	}
	site := map[string]any{"nom": name, "proprietes": properties}
	if sum/16%4 > 0 {
		site["lat"], site["lon"] = 44.5, 3.5
		properties["lieu"] = model.Place(44.5, 3.5)
		return site
	}
	at := c.address(int(sum / 64))
	site["adresse"] = map[string]any{"ligne_1": at.Line, "code_postal": at.Postcode, "commune": at.Town}
	properties["lieu"] = model.Place(at.Lat, at.Lon)
	return site
}

// patch returns a patch that gives any site the content of a name: it removes what that content lacks.
func (c *Customers) patch(name string) map[string]any {
	patch := c.content(name)
	for _, field := range []string{"lat", "lon", "adresse"} {
		if patch[field] == nil {
			patch[field] = nil
		}
	}
	properties := patch["proprietes"].(map[string]any)
	for _, name := range []string{"accueil", "note"} {
		if properties[name] == nil {
			properties[name] = nil
		}
	}
	return patch
}

// bulk is enough text to make a site need an event of its own. Every sixteenth content has it.
var bulk = strings.Repeat("Ouvert sans rendez-vous. ", 200)

// name returns the name that an act gives a site: no other act uses it.
func (act actDetails) name(i int) string { return fmt.Sprintf("%s %s.%d", act.Account, act.Label, i) }

func (c *Customers) openReferential(ctx context.Context, act actDetails) {
	act.Code = ""
	c.write(ctx, act, model.OpenReferential{Code: act.code(), Name: act.name(0)}, "POST /locations/referentiels",
		message{method: "POST", path: "/locations/referentiels", body: map[string]string{"code": act.code(), "nom": act.name(0)}})
}

func (c *Customers) renameReferential(ctx context.Context, act actDetails) {
	c.write(ctx, act, model.RenameReferential{Code: act.code(), Name: act.name(0)}, "PATCH "+referentialEndpoint,
		message{method: "PATCH", path: act.referentialPath(), body: map[string]string{"nom": act.name(0)}})
}

func (c *Customers) archiveReferential(ctx context.Context, act actDetails) {
	c.write(ctx, act, model.ArchiveReferential{Code: act.code()}, "DELETE "+referentialEndpoint, message{method: "DELETE",
		path: act.referentialPath()})
}

func (c *Customers) putSite(ctx context.Context, act actDetails) {
	c.atOnce(ctx, act, func(i int, act actDetails) {
		c.write(ctx, act, model.PutSite{Code: act.code(), ExternalID: act.site(), Name: act.name(i)}, "PUT "+siteEndpoint,
			message{method: "PUT", path: act.sitePath(), body: c.content(act.name(i))})
	})
}

// correctSite writes a site and corrects it a few times, each time on another instance, and reads it back each time.
func (c *Customers) correctSite(ctx context.Context, act actDetails) {
	for i := range act.Size {
		wasDisturbed := c.world.IsDisturbed()
		written := c.write(ctx, act, model.PutSite{Code: act.code(), ExternalID: act.site(), Name: act.name(10 + i)}, "PUT "+siteEndpoint,
			message{method: "PUT", path: act.sitePath(), body: c.content(act.name(10 + i))})
		if shown := c.ask(ctx, act, model.Locations, "GET "+siteEndpoint, act.sitePath(), 1); !wasDisturbed && !c.world.IsDisturbed() {
			c.checkReadBack(act, written, shown)
		}
		time.Sleep(time.Duration(act.Pick%700) * time.Millisecond)
		act.Instance = (act.Instance + 1) % c.world.Instances()
	}
}

// checkReadBack compares a site that was read with the one that was written just before.
func (c *Customers) checkReadBack(act actDetails, written, shown Answer) {
	wrote, isWritten := decode[foundSite](written)
	read, isShown := decode[foundSite](shown)
	if isWritten && (shown.Status == http.StatusNotFound || isShown && read.Version < wrote.Version) {
		c.world.Report(model.WriterSeesIt, "%s: %s of %s was written as %s and is %d %s", act.Label, act.sitePath(), act.Account,
			wrote.text(), shown.Status, read.text())
	}
}

// patchSite patches a site: half of the patches change its note alone, so that whatever others wrote meanwhile must stay.
func (c *Customers) patchSite(ctx context.Context, act actDetails) {
	c.atOnce(ctx, act, func(i int, act actDetails) {
		var command model.PlacesCommand = model.PatchSite{Code: act.code(), ExternalID: act.site(), Name: act.name(i)}
		body := c.patch(act.name(i))
		if (i+act.Pick)%2 == 0 {
			note := act.name(i)
			command = model.PatchNote{Code: act.code(), ExternalID: act.site(), Note: note}
			body = map[string]any{"proprietes": map[string]any{"note": note}}
		}
		c.write(ctx, act, command, "PATCH "+siteEndpoint, message{method: "PATCH", path: act.sitePath(), body: body})
	})
}

// switchSite deactivates a site and reactivates it at once, so that each may come first.
func (c *Customers) switchSite(ctx context.Context, act actDetails) {
	c.atOnce(ctx, act, func(i int, act actDetails) {
		verb := ":deactivate"
		if (i+act.Pick)%2 == 0 {
			verb = ":reactivate"
		}
		c.write(ctx, act, model.SwitchSite{Code: act.code(), ExternalID: act.site(), On: verb == ":reactivate"}, "POST "+siteEndpoint+verb,
			message{method: "POST", path: act.sitePath() + verb})
	})
}

// rows returns the sites of a sync: size of them from a first one on. Every third has a content that other syncs have too.
func (act actDetails) rows(first, salt int) (rows []model.Row) {
	for i := first; i < first+act.Size; i++ {
		row := model.Row{ExternalID: fmt.Sprintf("s%d", i), Name: act.name(salt*1000 + i)}
		if i%3 == 0 {
			row.Name = fmt.Sprintf("%s always %d", act.Account, i)
		}
		rows = append(rows, row)
	}
	return rows
}

// sendSync sends a sync, or an upsert.
func (c *Customers) sendSync(ctx context.Context, act actDetails, s model.SyncSites) Answer {
	sites := []map[string]any{}
	for _, row := range s.Rows {
		site := c.content(row.Name)
		site["external_id"] = row.ExternalID
		sites = append(sites, site)
	}
	body, header, verb := map[string]any{"sites": sites}, http.Header{}, "/sites:sync"
	if s.IsUpsert {
		verb = "/sites:upsert"
	} else if s.ConfirmsReduction {
		body["confirmer_reduction"] = true
	}
	if s.IsDryRun {
		body["dry_run"] = true
	}
	if s.IdempotencyKey != "" {
		header.Set("Idempotency-Key", s.IdempotencyKey)
	}
	return c.write(ctx, act, s, "POST "+referentialEndpoint+verb, message{"POST", act.referentialPath() + verb, body, header})
}

// newSync returns the sync of an act.
func (act actDetails) newSync() model.SyncSites {
	s := model.SyncSites{Code: act.code(), Rows: act.rows(act.Pick/50%5, 0), IsUpsert: act.Pick%4 == 0, IsDryRun: act.Pick%10 == 1}
	s.ConfirmsReduction = !s.IsUpsert && act.Pick%3 == 0
	return s
}

func (c *Customers) sync(ctx context.Context, act actDetails) { c.sendSync(ctx, act, act.newSync()) }

// contradict sends different syncs of one referential at once.
func (c *Customers) contradict(ctx context.Context, act actDetails) {
	c.atOnce(ctx, act, func(i int, act actDetails) {
		s := act.newSync()
		s.Rows = act.rows(i*2, i)
		c.sendSync(ctx, act, s)
	})
}

// repeat sends one sync two or more times at once with one Idempotency-Key, then again, and then another with the same key.
func (c *Customers) repeat(ctx context.Context, act actDetails) {
	s := act.newSync()
	s.IdempotencyKey = act.Label
	c.atOnce(ctx, act, func(_ int, act actDetails) { c.sendSync(ctx, act, s) })
	c.sendSync(ctx, act, s)
	if act.Pick%2 == 0 {
		s.Rows = act.rows(0, 7)
		c.sendSync(ctx, act, s)
	}
}

func (c *Customers) showSite(ctx context.Context, act actDetails) {
	c.ask(ctx, act, model.Locations, "GET "+siteEndpoint, act.sitePath(), 1)
}

func (c *Customers) showReferential(ctx context.Context, act actDetails) {
	c.ask(ctx, act, model.Locations, "GET "+referentialEndpoint, act.referentialPath(), 1)
}

func (c *Customers) listSites(ctx context.Context, act actDetails) {
	c.ask(ctx, act, model.Locations, "GET "+referentialEndpoint+"/sites", act.referentialPath()+"/sites?statut=tous&limit=1000", 1)
}

func (c *Customers) exportSites(ctx context.Context, act actDetails) {
	c.ask(ctx, act, model.Locations, "GET "+referentialEndpoint+"/sites:export", act.referentialPath()+"/sites:export?format=ndjson", 1)
}

// followChanges asks what changed since the last time.
func (c *Customers) followChanges(ctx context.Context, act actDetails) { c.follow(ctx, act) }
