package history

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"lieudit/http/pages/page"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
)

// eventPage is the data of event.html.
type eventPage struct {
	ID, Name string
	Line     Line
	IsStaff  bool
}

// showEvent shows one event whole. The path has its position on the log; its instant and subject are in the query, by which it is found.
func showEvent(q *page.Request) (page.View, error) {
	id := q.Vars["account"]
	now, err := page.Read[body.State](q, page.Path("/accounts/%s/state", id))
	if err != nil {
		return page.View{}, err
	}
	q.NameAccount(cmp.Or(now.Name, now.Account))
	at, err := time.Parse(time.RFC3339Nano, q.URL.Query().Get("le"))
	if err != nil {
		return page.View{}, refusal.NotFound
	}
	query := url.Values{
		"langue": {string(q.Print.Lang)}, "limit": {"1000"}, "from": {at.Format(time.RFC3339Nano)}, "to": {at.Add(time.Microsecond).Format(time.RFC3339Nano)},
	}
	if subject := q.URL.Query().Get("sujet"); subject != "" {
		query.Set("sujet", subject)
	}
	found, err := page.Read[body.History](q, page.Path("/accounts/%s/history", id)+"?"+query.Encode())
	if err != nil {
		return page.View{}, err
	}
	for _, e := range found.Results {
		if strconv.FormatUint(e.Position, 10) == q.Vars["position"] {
			lines, err := Lines(q, id, []body.Incident{e})
			if err != nil {
				return page.View{}, err
			}
			data := eventPage{now.Account, now.Name, lines[0], q.Principal.Account == ""}
			return page.View{Template: "event.html", Title: q.T("Événement", "Event"), Current: page.Path("/comptes/%s/historique", id), Data: data}, nil
		}
	}
	return page.View{}, refusal.NotFound
}
