package reference

import (
	"lieudit/http/pages/i18n"
	"lieudit/schemas/body/openapi"
)

// use is what an operation is called, and when it is the one to take.
type use struct{ title, use i18n.Text }

// titleOf is the title of an operation: that of uses, or its summary.
func titleOf(op openapi.Operation) Words {
	if u, ok := uses[openapi.OperationID(op)]; ok {
		return Words{Text: u.title}
	}
	return translate(op.Summary)
}

// uses are the operations of the API by slug. A test demands each; those of the customer area have their summaries.
var uses = map[string]use{
	"get_version": {
		i18n.Text{FR: "Ce qui tourne", EN: "What is running"},
		i18n.Text{FR: "Pour vérifier que le service répond, et savoir quel millésime d’adresses et quel réseau routier il sert. Sans clé.", EN: "To check that the service answers, and to see which vintage of addresses and which road network it serves. Without a key."},
	},
	"get_me": {
		i18n.Text{FR: "Ce que donne une clé", EN: "What a key gives"},
		i18n.Text{FR: "Pour contrôler une clé au démarrage de votre programme, et suivre ce qui reste du quota, des sites et des référentiels.", EN: "To check a key when your program starts, and to follow what is left of the quota, the sites and the referentials."},
	},
	"get_address_autocomplete": {
		i18n.Text{FR: "Compléter une adresse pendant la frappe", EN: "Complete an address while it is typed"},
		i18n.Text{FR: "Pour un champ de saisie : à chaque pause de frappe, les adresses qui commencent ainsi. Le dernier mot peut être incomplet. Passez par votre serveur : la clé secrète n’a rien à faire dans une page.", EN: "For an input field: at each pause in typing, the addresses that begin like that. The last word may be incomplete. Go through your server: a secret key has no place in a page."},
	},
	"get_address_verify": {
		i18n.Text{FR: "Vérifier une adresse", EN: "Verify an address"},
		i18n.Text{FR: "Pour une adresse déjà écrite : la trouver dans la base, et savoir partie par partie ce qui est confirmé, corrigé ou inconnu. En une ligne ou en champs séparés. La page « Verdicts » dit quand accepter, demander ou refuser.", EN: "For an address that is already written: to find it in the base, and to learn part by part what is confirmed, corrected or unknown. In one line or in separate fields. The page “Verdicts” tells when to accept, to ask or to refuse."},
	},
	"get_address_view_id": {
		i18n.Text{FR: "Lire une adresse par son identifiant", EN: "Read an address by its id"},
		i18n.Text{FR: "Pour retrouver une adresse gardée. Gardez id_ban : il survit aux changements de nom ; un ancien id mène aussi à l’adresse d’aujourd’hui.", EN: "To find a stored address again. Store id_ban: it survives renamings; an old id leads to today’s address too."},
	},
	"get_address_proximity": {
		i18n.Text{FR: "Trouver les adresses autour d’un point", EN: "Find the addresses around a point"},
		i18n.Text{FR: "Pour savoir à quelle adresse se trouve une position, ou ce qui entoure une adresse, du plus proche au plus lointain.", EN: "To learn at which address a position is, or what surrounds an address, the nearest first."},
	},
	"get_locality_search": {
		i18n.Text{FR: "Chercher une commune", EN: "Search for a commune"},
		i18n.Text{FR: "Pour une liste de communes : par nom, code postal, département, région ou population.", EN: "For a list of communes: by name, postcode, department, region or population."},
	},
	"get_search": {
		i18n.Text{FR: "Chercher comme l’API Adresse", EN: "Search as the API Adresse does"},
		i18n.Text{FR: "Pour un programme écrit pour l’ancienne API Adresse : changez l’URL de base et ajoutez l’en-tête. Pour un nouveau programme, prenez la vérification ou la complétion.", EN: "For a program written for the former API Adresse: change the base URL and add the header. For a new program take verification or completion."},
	},
	"get_reverse": {
		i18n.Text{FR: "Chercher par position comme l’API Adresse", EN: "Search by position as the API Adresse does"},
		i18n.Text{FR: "L’adresse la plus proche d’un point, dans les mots de l’ancienne API.", EN: "The address nearest to a point, in the words of the former API."},
	},
	"post_search_csv": {
		i18n.Text{FR: "Géocoder un fichier CSV", EN: "Geocode a CSV file"},
		i18n.Text{FR: "Le fichier revient ligne par ligne, avec ses propres colonnes, son encodage et son séparateur, et les colonnes du résultat derrière.", EN: "The file comes back row by row, with its own columns, encoding and separator, and the columns of the result behind them."},
	},
	"post_reverse_csv": {
		i18n.Text{FR: "Trouver les adresses des points d’un fichier CSV", EN: "Find the addresses of the points of a CSV file"},
		i18n.Text{FR: "Comme le géocodage d’un fichier, mais à partir de latitudes et de longitudes.", EN: "As geocoding a file, but from latitudes and longitudes."},
	},
	"post_locations_referentiels": {
		i18n.Text{FR: "Ouvrir un référentiel", EN: "Open a referential"},
		i18n.Text{FR: "Un référentiel est un groupe nommé de vos sites : vos magasins, vos points de retrait. Son code est à vous pour toujours, même archivé.", EN: "A referential is a named group of your sites: your shops, your pick-up points. Its code is yours for ever, archived or not."},
	},
	"get_locations_referentiels": {
		i18n.Text{FR: "Lister les référentiels", EN: "List the referentials"},
		i18n.Text{FR: "Ceux du compte, actifs et archivés, avec leur nombre de sites actifs.", EN: "Those of the account, active and archived, with their number of active sites."},
	},
	"get_locations_referentiels_code": {
		i18n.Text{FR: "Lire un référentiel", EN: "Read a referential"},
		i18n.Text{FR: "Son nom, son état et son nombre de sites actifs.", EN: "Its name, its status and its number of active sites."},
	},
	"patch_locations_referentiels_code": {
		i18n.Text{FR: "Renommer un référentiel", EN: "Rename a referential"},
		i18n.Text{FR: "Seul le nom change ; le code reste dans les URL.", EN: "Only the name changes; the code stays in the URLs."},
	},
	"delete_locations_referentiels_code": {
		i18n.Text{FR: "Archiver un référentiel", EN: "Archive a referential"},
		i18n.Text{FR: "Libère une place de l’offre. Ses sites deviennent inactifs, tout reste lisible, et son code ne sert plus à un autre.", EN: "Frees a place of the plan. Its sites become inactive, all stays readable, and its code never serves for another."},
	},
	"post_locations_referentiels_code_sites_sync": {
		i18n.Text{FR: "Synchroniser tous les sites", EN: "Sync all sites"},
		i18n.Text{FR: "Pour un envoi régulier de la liste entière : crée, modifie, réactive, et désactive ce qui n’y est plus. Tout passe, ou rien. Essayez d’abord avec dry_run, et donnez une Idempotency-Key pour pouvoir renvoyer sans risque.", EN: "For sending the whole list regularly: creates, changes, reactivates, and deactivates what is no longer there. All or nothing. Try with dry_run first, and give an Idempotency-Key so that sending it again is safe."},
	},
	"post_locations_referentiels_code_sites_upsert": {
		i18n.Text{FR: "Créer ou modifier quelques sites", EN: "Create or change some sites"},
		i18n.Text{FR: "Comme la synchronisation, mais les sites absents de la liste restent comme ils sont.", EN: "As a sync, but sites that are not in the list stay as they are."},
	},
	"get_locations_referentiels_code_sites": {
		i18n.Text{FR: "Lister les sites", EN: "List the sites"},
		i18n.Text{FR: "Ceux d’un référentiel, page par page, triés par votre identifiant.", EN: "Those of a referential, page by page, sorted by your id."},
	},
	"get_locations_referentiels_code_sites_export": {
		i18n.Text{FR: "Exporter les sites", EN: "Export the sites"},
		i18n.Text{FR: "Un fichier CSV, GeoJSON ou NDJSON des sites actifs. Réimporté tel quel, il ne change rien.", EN: "A CSV, GeoJSON or NDJSON file of the active sites. Imported again as it is, it changes nothing."},
	},
	"get_locations_referentiels_code_sites_external_id": {
		i18n.Text{FR: "Lire un site", EN: "Read a site"},
		i18n.Text{FR: "Par votre identifiant, actif ou non.", EN: "By your id, active or not."},
	},
	"put_locations_referentiels_code_sites_external_id": {
		i18n.Text{FR: "Écrire un site", EN: "Write a site"},
		i18n.Text{FR: "Crée le site, ou remplace tout son contenu. Sans lat ni lon, il est placé d’après son adresse.", EN: "Creates the site, or replaces all of its content. Without lat and lon it is placed by its address."},
	},
	"patch_locations_referentiels_code_sites_external_id": {
		i18n.Text{FR: "Modifier un site", EN: "Change a site"},
		i18n.Text{FR: "Ce que vous envoyez change, le reste demeure, null efface.", EN: "What you send changes, the rest stays, null removes."},
	},
	"post_locations_referentiels_code_sites_external_id_deactivate": {
		i18n.Text{FR: "Désactiver un site", EN: "Deactivate a site"},
		i18n.Text{FR: "Il ne compte plus et n’est plus trouvé, mais reste lisible.", EN: "It no longer counts and is no longer found, but stays readable."},
	},
	"post_locations_referentiels_code_sites_external_id_reactivate": {
		i18n.Text{FR: "Réactiver un site", EN: "Reactivate a site"},
		i18n.Text{FR: "Il revient tel qu’il était, si la capacité le permet.", EN: "It comes back as it was, if the capacity allows it."},
	},
	"get_locations_changes": {
		i18n.Text{FR: "Suivre les changements", EN: "Follow the changes"},
		i18n.Text{FR: "Pour tenir une copie à jour : gardez le curseur de la dernière réponse et revenez quand vous voulez, dans les 30 jours.", EN: "To keep a copy up to date: keep the cursor of the last answer and come back when you like, within 30 days."},
	},
	"get_locations_search": {
		i18n.Text{FR: "Chercher parmi ses sites", EN: "Search among one’s own sites"},
		i18n.Text{FR: "Pour un localisateur de magasins : par mots, autour d’un point ou d’une commune, par étiquette, ouverts maintenant. La seule opération qu’une page publique peut appeler, avec une clé publiable.", EN: "For a store locator: by words, around a point or a commune, by tag, open now. The only operation that a public page may call, with a publishable key."},
	},
	"get_route_compute": {
		i18n.Text{FR: "Calculer un itinéraire", EN: "Compute a route"},
		i18n.Text{FR: "D’une adresse, d’une position ou d’un de vos sites à un autre, avec étapes, variantes et instructions.", EN: "From an address, a position or one of your sites to another, with waypoints, alternatives and instructions."},
	},
	"get_route_matrix": {
		i18n.Text{FR: "Calculer une matrice de trajets", EN: "Compute a matrix of journeys"},
		i18n.Text{FR: "Durées et distances de chaque origine à chaque destination, au plus 625 cellules.", EN: "Durations and distances from each origin to each destination, at most 625 cells."},
	},
	"get_route_isochrone": {
		i18n.Text{FR: "Tracer une zone accessible", EN: "Draw an area within reach"},
		i18n.Text{FR: "Ce qu’on atteint d’un point en tant de minutes ou de mètres, ou d’où l’on atteint ce point ; avec vos sites qui s’y trouvent, si vous le demandez.", EN: "What is reached from a point within some minutes or metres, or from where that point is reached; with those of your sites in it, if you ask for them."},
	},
	"get_route_nearest": {
		i18n.Text{FR: "Trouver la destination la plus proche par la route", EN: "Find the nearest destination by road"},
		i18n.Text{FR: "Parmi des destinations ou vos propres sites, classées par durée ou distance réelles et non à vol d’oiseau.", EN: "Among destinations or your own sites, sorted by real duration or distance and not as the crow flies."},
	},
	"get_route_optimize": {
		i18n.Text{FR: "Ordonner une tournée", EN: "Order a tour"},
		i18n.Text{FR: "Le meilleur ordre de 2 à 48 étapes, et l’itinéraire qui les relie. Exact jusqu’à 15 étapes.", EN: "The best order of 2 to 48 stops, and the route that joins them. Exact up to 15 stops."},
	},
}
