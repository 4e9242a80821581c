package esdb_test

import (
	"log/slog"
	"strings"
	"testing"

	"lieudit/eventstore/esdb"
)

func TestARefusedConnectionStringIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{
		"esdb://u:sEcReT@h:port?tls=false", "esdb://u:sEcReT%zz@h:1?tls=false", "esdb://u:sEcReT/x@h:1?tls=false",
		"esdb://u:sEcReT x@h?tls=false", "esdb+unix://u:sEcReT%zz@/x", "u:sEcReT@h", "esdb://u:sEcReT@h?tls=maybe",
		"esdb://u:sEcReT@h:1,h:x?tls=false",
	} {
		s, err := esdb.Open(t.Context(), connection, slog.New(slog.DiscardHandler))
		if err == nil {
			s.Close()
			t.Errorf("%s was taken", connection)
			continue
		}
		if strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("%s is refused with: %v", connection, err)
		}
	}
}
