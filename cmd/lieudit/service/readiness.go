package service

import (
	"context"

	"lieudit/cmd/lieudit/ops"
	"lieudit/schemas/body"
)

// partText is what people are told of a part of readiness: what it is, and the first thing to do when it fails. The guide has more.
type partText struct{ about, advice body.Text }

// partTexts has the parts of components by their names.
var partTexts = map[string]partText{
	"log": {
		body.Text{EN: "The log of accounts, keys and sites", FR: "Le journal des comptes, des clés et des sites"},
		body.Text{EN: "Check the disk, or that the server of the log runs and can be reached.", FR: "Vérifiez le disque, ou que le serveur du journal fonctionne et répond."},
	},
	"usage log": {
		body.Text{EN: "The log of counted requests", FR: "Le journal des requêtes comptées"},
		body.Text{EN: "Check the disk, or that the server of the log runs and can be reached.", FR: "Vérifiez le disque, ou que le serveur du journal fonctionne et répond."},
	},
	"clock": {
		body.Text{EN: "The clock of this machine", FR: "L’horloge de cette machine"},
		body.Text{EN: "Set the clock; if it is right, restart once with --accept-clock.", FR: "Mettez l’horloge à l’heure ; si elle est juste, redémarrez une seule fois avec --accept-clock."},
	},
	"log times": {
		body.Text{EN: "Times and periods on the logs", FR: "Les heures et les périodes des journaux"},
		body.Text{EN: "Check the clock first, then follow the guide.", FR: "Vérifiez d’abord l’horloge, puis suivez le guide."},
	},
	"key ring": {
		body.Text{EN: "The keys and tokens in memory", FR: "Les clés et les jetons en mémoire"},
		body.Text{EN: "It follows the log by itself: see the part log if this stays.", FR: "Elles suivent le journal d’elles-mêmes : si cela dure, voyez le journal."},
	},
	"vault": {
		body.Text{EN: "The vault of data keys", FR: "Le coffre des clés de données"},
		body.Text{EN: "Put the newest copy of vault.db back, or the right master key.", FR: "Remettez la copie la plus récente de vault.db, ou la bonne clé maîtresse."},
	},
	"data keys": {
		body.Text{EN: "Access to the data keys", FR: "L’accès aux clés de données"},
		body.Text{EN: "Check that the database or the file of the vault can be reached.", FR: "Vérifiez que la base ou le fichier du coffre est accessible."},
	},
	"read models": {
		body.Text{EN: "The tables for lists, usage and history", FR: "Les tables des listes, de l’usage et de l’historique"},
		body.Text{EN: "They catch up by themselves; if not, rebuild them, or repair the account that is named.", FR: "Elles rattrapent leur retard seules ; sinon reconstruisez-les, ou réparez le compte nommé."},
	},
	"proxies": {
		body.Text{EN: "The proxies in front", FR: "Les proxys placés devant"},
		body.Text{EN: "Name the proxy in --trusted-proxies and restart.", FR: "Nommez le proxy dans --trusted-proxies et redémarrez."},
	},
	"site search": {
		body.Text{EN: "The search of sites in Meilisearch", FR: "La recherche de sites dans Meilisearch"},
		body.Text{EN: "Check that Meilisearch runs; changes wait and are sent then.", FR: "Vérifiez que Meilisearch fonctionne ; les changements attendent et partiront alors."},
	},
	"addresses": {
		body.Text{EN: "The addresses that are served", FR: "Les adresses servies"},
		body.Text{EN: "Import a vintage: lieudit ban import FILE.", FR: "Importez un millésime : lieudit ban import FICHIER."},
	},
	"routes": {
		body.Text{EN: "The road network that is served", FR: "Le réseau routier servi"},
		body.Text{EN: "Import a map: lieudit roads import FILE.osm.pbf, or check the routing server.", FR: "Importez une carte : lieudit roads import FICHIER.osm.pbf, ou vérifiez le serveur d’itinéraires."},
	},
	"releases": {
		body.Text{EN: "The same data on every instance", FR: "Les mêmes données sur chaque instance"},
		body.Text{EN: "Check that the instances reach each other (--peer-url) and have room on disk.", FR: "Vérifiez que les instances se joignent (--peer-url) et ont de la place sur le disque."},
	},
	"connections": {
		body.Text{EN: "The connections of clients", FR: "Les connexions des clients"},
		body.Text{EN: "Raise --connections, or start another instance.", FR: "Augmentez --connections, ou démarrez une autre instance."},
	},
	"start": {
		body.Text{EN: "The start of this instance", FR: "Le démarrage de cette instance"},
		body.Text{EN: "Wait: it is filling its tables and fetching what the others serve.", FR: "Attendez : elle remplit ses tables et prend ce que servent les autres."},
	},
	"stop": {
		body.Text{EN: "The stop of this instance", FR: "L’arrêt de cette instance"},
		body.Text{EN: "Nothing is wrong: it was asked to stop.", FR: "Rien d’anormal : on lui a demandé de s’arrêter."},
	},
	"address index": {
		body.Text{EN: "The index of addresses in Meilisearch", FR: "L’index des adresses dans Meilisearch"},
		body.Text{EN: "Wait while it is filled, or check that Meilisearch runs.", FR: "Attendez qu’il se remplisse, ou vérifiez que Meilisearch fonctionne."},
	},
}

// readiness is what /readyz answers, with what people can do, in the language fr or en.
func (s *service) readiness(ctx context.Context, language string) body.Readiness {
	ctx, cancel := context.WithTimeout(ctx, ops.ReadinessTimeout)
	defer cancel()
	components := s.components()
	report := ops.Check(ctx, components)
	shown := body.Readiness{Envelope: body.OKEnvelope, IsReady: report.Ready, Results: make([]body.ReadinessPart, len(components))}
	for i, c := range components {
		text := partTexts[c.Name]
		shown.Results[i] = body.ReadinessPart{Name: c.Name, About: text.about.In(language), IsRequired: c.Required, Reason: report.Reason(c.Name)}
		if shown.Results[i].IsFine = shown.Results[i].Reason == ""; !shown.Results[i].IsFine {
			shown.Results[i].Advice = text.advice.In(language)
		}
	}
	return shown
}
