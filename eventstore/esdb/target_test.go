package esdb

import (
	"slices"
	"testing"
)

func TestConnectionStrings(t *testing.T) {
	t.Parallel()
	for connection, want := range map[string]target{
		"esdb://localhost":                                  {seeds: []string{"localhost:2113"}},
		"esdb://localhost:1234?tls=false":                   {seeds: []string{"localhost:1234"}},
		"esdb://u:p@a:1,b:2,c":                              {seeds: []string{"a:1", "b:2", "c:2113"}, usesGossip: true},
		"esdb+discover://cluster.example:2113":              {seeds: []string{"cluster.example:2113"}, usesGossip: true},
		"esdb+unix:///run/lieudit/log.sock":                 {seeds: []string{"unix:/run/lieudit/log.sock"}},
		"esdb+unix:///run/a%20b?keepAliveInterval=-1":       {seeds: []string{"unix:/run/a b"}},
		"esdb://localhost?nodePreference=leader":            {seeds: []string{"localhost:2113"}},
		"esdb://localhost?keepAliveInterval=10000&tls=true": {seeds: []string{"localhost:2113"}},
	} {
		got, err := parseConnectionString(connection)
		if err != nil || !slices.Equal(got.seeds, want.seeds) || got.usesGossip != want.usesGossip {
			t.Errorf("%s: got %v %v, %v, want %v %v", connection, got.seeds, got.usesGossip, err, want.seeds, want.usesGossip)
		}
	}
}

func TestConnectionStringsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{
		"", "localhost:2113", "http://localhost:2113", "esdb://", "esdb://a:b", "esdb://localhost/path",
		"esdb+unix://host/path", "esdb+unix:relative", "esdb+unix://",
		"esdb://localhost?nodePreference=follower", "esdb://localhost?tlsCAFile=/nowhere", "esdb://localhost?userCertFile=/x",
	} {
		if _, err := parseConnectionString(connection); err == nil {
			t.Errorf("%q is accepted", connection)
		}
	}
}
