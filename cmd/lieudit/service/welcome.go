package service

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// writeFirstStart has the instance write the first events of a new log. It shows their secrets once the API is open: the demo key is
// accepted from then on.
func (s *service) writeFirstStart(ctx context.Context) error {
	made := s.instance.WriteFirstStart(ctx)
	select {
	case <-s.api.Opened():
	case <-ctx.Done():
		return nil
	}
	if made.DemoKey != "" {
		s.showDemo(made.DemoKey)
	}
	if made.Login != "" {
		s.showLogin(made.Login)
	}
	return nil
}

// printWelcome prints what the instance runs on and the addresses of its listeners; printAPI adds the API, which opens last.
// Tests and the harness of cmd/bench parse these lines.
func (s *service) printWelcome(out io.Writer) {
	fmt.Fprintf(out, "lieudit %s\n", s.version)
	for _, line := range [][2]string{
		{"log", s.Config.describeLog()}, {"read models", s.Config.describeReadModels()}, {"addresses", s.describeVintage()}, {"roads", s.describeRoads()}, {"address index", s.Config.describeAddressIndex()},
		{"site search", s.Config.describeSiteSearch()},
		{"customer area", s.area.URL() + "/customer-area/v1"}, {"health, metrics", s.ops.URL()},
	} {
		fmt.Fprintf(out, welcomeLine, line[0], line[1])
	}
}

// welcomeLine is the form of the lines that name a part and what it is.
const welcomeLine = "  %-16s %s\n"

// printAPI prints the address of the API once it is open.
func (s *service) printAPI(out io.Writer) {
	fmt.Fprintf(out, welcomeLine, "API", s.api.URL()+"/services/v1")
}

// Files in the data folder that hold the secrets of the first start if Out is not a terminal: many people read logs, and they are kept.
const (
	demoFile  = "demo-key"
	loginFile = "login-link"
)

// showDemo prints the demo key on a terminal. If there is none, it writes the key to a file that only the owner can read.
func (s *service) showDemo(key string) {
	if s.IsTerminal {
		s.printDemo(s.Out, key)
		return
	}
	path := filepath.Join(s.Data, demoFile)
	if err := writeSecretFile(path, key); err != nil {
		s.Log.Error("the demo account's key could not be written, and is lost", "reason", err) // the service works without the key
		return
	}
	fmt.Fprintf(s.Out, "A demo account was opened. Its key is in %s: export LIEUDIT_KEY=$(cat %[1]s)\n", path)
}

// showLogin prints the operator's first link on a terminal. If there is none, it writes the link to a file that only the owner can read.
func (s *service) showLogin(link string) {
	if s.IsTerminal {
		fmt.Fprintf(s.Out, "\nThe customer area in your browser, by a link that works once, for 15 minutes (lieudit login makes another):\n\n  %s\n", link)
		return
	}
	path := filepath.Join(s.Data, loginFile)
	if err := writeSecretFile(path, link); err != nil {
		s.Log.Error("the link to the customer area could not be written; lieudit login makes another", "reason", err)
		return
	}
	fmt.Fprintf(s.Out, "The customer area in your browser: the link in %s works once, for 15 minutes. lieudit login makes another.\n", path)
}

// printDemo prints the demo key and commands with it that a reader can paste into a shell.
func (s *service) printDemo(out io.Writer, key string) {
	base := s.api.URL() + "/services/v1"
	fmt.Fprintf(out, `
A demo account was opened. Its key is shown this once:

  export LIEUDIT_KEY=%s

  curl %s/version
  curl -H "Authorization: Bearer $LIEUDIT_KEY" %s/me
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/autocomplete?q=rue+de+la+mairie'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/address/verify?q=rue+de+la+mairie+toulouse'
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -d '{"code": "boutiques"}' %s/locations/referentiels
  curl -H "Authorization: Bearer $LIEUDIT_KEY" -X PUT -d '{"nom": "Boutique de Mende", "lat": 44.5176, "lon": 3.5}' %s/locations/referentiels/boutiques/sites/mende-1
  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/locations/search?q=mende'
`, key, base, base, base, base, base, base, base)
	if served := s.servedNetwork.Load(); served != nil && served.isDemo { // the demo addresses are on its streets
		fmt.Fprintf(out, `  curl -H "Authorization: Bearer $LIEUDIT_KEY" '%s/route/compute?origin=rue+de+la+mairie+toulouse&destination=impasse+du+long+pre+toulouse&steps=true'
`, base)
	}
}
