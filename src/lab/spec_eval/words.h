// Words that the text sources are made of. Ordinary ones, so that every vocabulary has them.
#pragma once

#include <string_view>

namespace stet {

inline constexpr std::string_view kNouns[] = {
    "harbour",  "ledger",    "engine",    "valley",    "archive",   "garden",      "committee",   "lantern",
    "quarry",   "orchard",   "telegraph", "museum",    "granary",   "compass",     "workshop",    "bridge",
    "glacier",  "festival",  "notebook",  "carpenter", "pharmacy",  "railway",     "observatory", "village",
    "turbine",  "library",   "courier",   "monastery", "reservoir", "market",      "chimney",     "physician",
    "painter",  "warehouse", "satellite", "forest",    "peninsula", "laboratory",  "orchestra",   "plough",
    "customs",  "tunnel",    "cathedral", "printer",   "beacon",    "mill",        "canal",       "surveyor",
    "stable",   "harvest",   "court",     "island",    "furnace",   "letter",      "bakery",      "witness",
    "mine",     "theatre",   "pilot",     "vineyard",  "shipyard",  "tower",       "registry",    "nursery",
    "fortress", "ferry",     "clinic",    "academy",   "bell",      "archipelago", "cellar",      "treaty",
    "weaver",   "machine",   "river",     "station",   "council",   "atlas",       "barometer",   "meadow",
    "dam",      "choir",     "locksmith", "plateau",   "kitchen",   "census",      "airfield",    "gallery",
    "sawmill",  "harness",   "inspector", "spring",    "pasture",   "printing",    "clock"};

inline constexpr std::string_view kVerbs[] = {
    "measured",  "repaired",   "crossed",      "described",  "supplied",    "surrounded", "followed",  "replaced",
    "inspected", "delayed",    "financed",     "sketched",   "flooded",     "protected",  "reported",  "catalogued",
    "abandoned", "discovered", "rebuilt",      "questioned", "illuminated", "translated", "inherited", "guarded",
    "visited",   "weighed",    "photographed", "drained",    "restored",    "announced",  "divided",   "emptied",
    "defended",  "observed",   "purchased",    "compared",   "extended",    "ignored",    "recorded",  "opened",
    "balanced",  "praised",    "mapped",       "doubted",    "collected",   "finished",   "carried",   "examined",
    "improved",  "counted",    "painted",      "moved",      "closed",      "admired",    "copied",    "tested",
    "warned",    "harvested",  "sealed",       "traced"};

inline constexpr std::string_view kAdjectives[] = {
    "narrow",   "forgotten", "northern", "patient",    "wooden",    "quiet",    "expensive", "crowded",   "distant",
    "brass",    "early",     "careful",  "flooded",    "modern",    "steep",    "anonymous", "fragile",   "famous",
    "uneven",   "salted",    "young",    "provincial", "windy",     "complete", "doubtful",  "silver",    "hidden",
    "broken",   "generous",  "southern", "ancient",    "temporary", "curious",  "heavy",     "bright",    "frozen",
    "official", "rural",     "empty",    "second",     "careless",  "royal",    "coastal",   "weathered", "honest",
    "shallow",  "private",   "endless",  "electric",   "formal",    "stubborn", "dusty",     "precise",   "western",
    "muddy",    "crooked",   "grateful", "hollow",     "busy",      "final"};

inline constexpr std::string_view kPlaces[] = {"in March",
                                               "before noon",
                                               "near the border",
                                               "after the storm",
                                               "without a permit",
                                               "during the strike",
                                               "at low tide",
                                               "by order of the mayor",
                                               "for eleven years",
                                               "under the old roof",
                                               "beyond the hills",
                                               "with borrowed tools",
                                               "on the second floor",
                                               "within a week",
                                               "against all advice",
                                               "at the edge of town",
                                               "between two winters",
                                               "since the fire",
                                               "along the coast",
                                               "in poor light",
                                               "over the summer",
                                               "with great care",
                                               "behind the station",
                                               "until nightfall",
                                               "for a small fee",
                                               "despite the rain",
                                               "in the third volume",
                                               "by accident",
                                               "on a Thursday",
                                               "at its own expense"};

inline constexpr std::string_view kJoints[] = {
    "while",  "because",  "although",  "so that",     "whereas", "until",       "after",    "since",
    "unless", "and soon", "but later", "even though", "just as", "long before", "whenever", "in case"};

inline constexpr std::string_view kStems[] = {
    "load",  "merge",  "parse",  "route",  "score",  "trim",   "index", "pack",  "scan",  "split",
    "join",  "rank",   "fetch",  "store",  "clamp",  "shift",  "fold",  "probe", "queue", "audit",
    "batch", "align",  "encode", "filter", "group",  "hash",   "limit", "match", "order", "patch",
    "query", "reduce", "sample", "tally",  "unpack", "verify", "weigh", "yield", "zip",   "blend"};

inline constexpr std::string_view kThings[] = {
    "records", "widths", "totals",  "edges",   "frames",  "prices",  "limits", "nodes",  "cells",
    "rates",   "keys",   "spans",   "rows",    "blocks",  "hours",   "scores", "tiles",  "parts",
    "routes",  "bytes",  "cursors", "ranges",  "labels",  "steps",   "tokens", "pages",  "slots",
    "batches", "queues", "values",  "weights", "offsets", "signals", "events", "leases", "grants"};

}  // namespace stet
