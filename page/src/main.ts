// Starts the page, with SPARQL.
import { start } from './app';
import { SPARQL } from './sparql/language';
import './style/base.css';
import './style/editor.css';
import './style/result.css';

const root = document.getElementById('app');
if (root !== null) start(root, SPARQL);
