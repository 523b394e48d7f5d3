"""Fixtures: a small graph that both languages read."""

import pytest

import vervet

PEOPLE = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:vervet:vertex:1> a label:person ; key:name "Ann" ; key:age 34 ; key:height 1.7e0 ;
    key:born "1990-02-03"^^<http://www.w3.org/2001/XMLSchema#date> ; rdfs:label "Anna"@de ; key:knows <urn:vervet:vertex:2> .
<urn:vervet:vertex:2> a label:person ; key:name "Bob" ; key:age 27 ; key:knows <urn:vervet:vertex:3> .
<urn:vervet:vertex:3> a label:person ; key:name "Cem" ; key:age 61 .
"""

PREFIXES = """
@prefix label: <urn:vervet:label:> .
@prefix key: <urn:vervet:key:> .
"""


@pytest.fixture
def empty():
    with vervet.open() as db:
        yield db


@pytest.fixture
def people(empty):
    assert empty.load_text(PREFIXES + PEOPLE, "ttl").added == 14
    return empty
